#include "shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "shm/process.h"

namespace pullman::shm {
namespace {

namespace fs = std::filesystem;

// The secret has a cache line of its own, before the usable bytes.
constexpr std::size_t kHeadBytes = 64;
constexpr const char* kPrefix = "pullman.";

std::string text_of(int error) {
  return std::generic_category().message(error);
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::span<std::byte> map(const File& file, std::size_t bytes, const fs::path& path) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (at == MAP_FAILED) {
    throw SegmentError(fmt::format("{} cannot be mapped: {}", path.string(), text_of(errno)));
  }
  return {static_cast<std::byte*>(at), bytes};
}

// "pullman.<namespace of process ids>.<process id>.<when it started>.<16 hexadecimal digits>"
std::string new_name() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) {
    throw SegmentError("the kernel gives no random bytes: " + text_of(errno));
  }
  const ProcessName self = this_process();
  return fmt::format("{}{}.{}.{}.{:016x}", kPrefix, process_namespace(), self.id, self.started,
                     random);
}

// A name that is told by a peer must not lead out of the folder.
bool is_name(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() <= Segment::kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
         });
}

}  // namespace

Segment::Segment(fs::path path, std::string name, std::span<std::byte> mapped, bool ours)
    : path_(std::move(path)),
      name_(std::move(name)),
      mapped_(mapped),
      bytes_(mapped.subspan(kHeadBytes)),
      named_(ours) {}

Segment::Segment(Segment&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      mapped_(std::exchange(other.mapped_, {})),
      bytes_(std::exchange(other.bytes_, {})),
      named_(std::exchange(other.named_, false)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  Segment taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(name_, taken.name_);
  std::swap(mapped_, taken.mapped_);
  std::swap(bytes_, taken.bytes_);
  std::swap(named_, taken.named_);
  return *this;
}

Segment::~Segment() {
  unlink();
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

void Segment::unlink() {
  if (std::exchange(named_, false)) ::unlink(path_.c_str());
}

Segment Segment::create(std::size_t bytes, const Secret& secret, const fs::path& folder) {
  std::string name = new_name();
  const fs::path path = folder / name;
  const File file(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd() < 0) {
    throw SegmentError(
        fmt::format("no memory can be shared in {}: {}", folder.string(), text_of(errno)));
  }
  const std::size_t whole = kHeadBytes + bytes;
  try {
    // It returns the error. ftruncate() would succeed, and the first write might end by SIGBUS.
    if (const int error = posix_fallocate(file.fd(), 0, static_cast<off_t>(whole)); error != 0) {
      throw SegmentError(
          fmt::format("{} has no room for {} bytes to share: {}; a larger one helps "
                      "(docker run --shm-size)",
                      folder.string(), whole, text_of(error)));
    }
    const std::span<std::byte> mapped = map(file, whole, path);
    std::copy(secret.begin(), secret.end(), mapped.begin());
    return {path, std::move(name), mapped, true};
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

Segment Segment::open(std::string_view name, std::size_t bytes, const Secret& secret,
                      const fs::path& folder) {
  if (!is_name(name)) throw SegmentError("the peer has told no name of shared memory");
  fs::path path = folder / name;
  const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.fd() < 0) {
    throw SegmentError(
        fmt::format("{} of the peer cannot be opened here: {}; containers share "
                    "memory if they have one /dev/shm (docker run --ipc)",
                    path.string(), text_of(errno)));
  }
  const std::size_t whole = kHeadBytes + bytes;
  struct stat facts {};
  const bool right = fstat(file.fd(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                     facts.st_uid == geteuid() && static_cast<std::size_t>(facts.st_size) == whole;
  if (!right) {
    throw SegmentError(fmt::format("{} is not the peer's: another owner or length", path.string()));
  }
  const std::span<std::byte> mapped = map(file, whole, path);
  Segment opened(std::move(path), std::string(name), mapped, false);
  if (!std::equal(secret.begin(), secret.end(), opened.mapped_.begin())) {
    throw SegmentError(fmt::format("{} is not the peer's: another secret", opened.path_.string()));
  }
  return opened;
}

std::size_t sweep(const fs::path& folder) {
  std::size_t removed = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    ProcessName owner;
    const std::string name = entry.path().filename();
    if (!is_name(name)) continue;
    std::uint64_t space = 0;
    const int read = std::sscanf(name.c_str(), "pullman.%" SCNu64 ".%d.%" SCNu64 ".", &space,
                                 &owner.id, &owner.started);
    if (read != 3 || space != process_namespace()) continue;
    struct stat facts {};
    if (lstat(entry.path().c_str(), &facts) != 0 || facts.st_uid != geteuid()) continue;
    if (has_ended(owner)) removed += ::unlink(entry.path().c_str()) == 0;
  }
  return removed;
}

}  // namespace pullman::shm
