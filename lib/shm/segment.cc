#include "shm/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pullman::shm {
namespace {

// The secret has a cache line of its own, before the usable bytes.
constexpr std::size_t kHeadBytes = 64;

}  // namespace

Segment::Segment(File file, std::string name, std::span<std::byte> bytes)
    : file_(std::move(file)), name_(std::move(name)), bytes_(bytes) {}

void Segment::unlink() {
  if (OwnedFile* own = std::get_if<OwnedFile>(&file_)) own->unlink();
}

Segment Segment::create(std::size_t bytes, const Secret& secret,
                        const std::filesystem::path& folder) {
  OwnedFile file = OwnedFile::create(kHeadBytes + bytes, folder);
  const std::span<std::byte> mapped = file.bytes();
  std::copy(secret.begin(), secret.end(), mapped.begin());
  std::string name = file.path().filename().string();
  return {std::move(file), std::move(name), mapped.subspan(kHeadBytes)};
}

Segment Segment::open(std::string_view name, std::size_t bytes, const Secret& secret,
                      const std::filesystem::path& folder) {
  // A name that is told by a peer must not lead out of the folder.
  if (!is_owned_name(name)) throw MemoryError("the peer has told no name of shared memory");
  const std::filesystem::path path = folder / name;
  try {
    MappedFile file(path, MappedFile::Access::kWrite);
    const std::span<std::byte> mapped = file.bytes();
    if (mapped.size() != kHeadBytes + bytes) throw MemoryError("another length");
    if (!std::equal(secret.begin(), secret.end(), mapped.begin()))
      throw MemoryError("another secret");
    return {std::move(file), std::string(name), mapped.subspan(kHeadBytes)};
  } catch (const MemoryError& error) {
    throw MemoryError(
        fmt::format("the memory that the peer offers is not to be had here: {}: {}; containers "
                    "share memory if they have one /dev/shm (docker run --ipc)",
                    path.string(), error.what()));
  }
}

}  // namespace pullman::shm
