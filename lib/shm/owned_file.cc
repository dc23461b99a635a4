#include "shm/owned_file.h"

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
#include <system_error>
#include <utility>

namespace pullman::shm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "pullman.";

std::string text_of(int error) {
  return std::generic_category().message(error);
}

class File {
 public:
  File(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::span<std::byte> map(const File& file, std::size_t bytes, int protection,
                         const fs::path& path) {
  void* at = mmap(nullptr, bytes, protection, MAP_SHARED, file.fd(), 0);
  if (at == MAP_FAILED) {
    throw MemoryError(fmt::format("{} cannot be mapped: {}", path.string(), text_of(errno)));
  }
  return {static_cast<std::byte*>(at), bytes};
}

// It returns the error. ftruncate() would succeed, and the first write might end by SIGBUS.
void reserve(const File& file, std::size_t bytes, const fs::path& path) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(file.fd(), 0, static_cast<off_t>(bytes));
  if (error == 0) return;
  throw MemoryError(
      fmt::format("{} has no room for {} bytes to share: {}; a larger one helps "
                  "(docker run --shm-size)",
                  path.parent_path().string(), bytes, text_of(error)));
}

// "pullman.<namespace of process ids>.<process id>.<when it started>.<16 hexadecimal digits>"
std::string new_name() {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) {
    throw MemoryError("the kernel gives no random bytes: " + text_of(errno));
  }
  const ProcessName self = this_process();
  return fmt::format("{}{}.{}.{}.{:016x}", kPrefix, process_namespace(), self.id, self.started,
                     random);
}

bool is_ours(const struct stat& facts) {
  return S_ISREG(facts.st_mode) && facts.st_uid == geteuid();
}

// A socket may stand beside a file (telemetry/door.h).
bool may_be_removed(const struct stat& facts) {
  return (S_ISREG(facts.st_mode) || S_ISSOCK(facts.st_mode)) && facts.st_uid == geteuid();
}

}  // namespace

OwnedFile::OwnedFile(fs::path path, std::span<std::byte> mapped)
    : path_(std::move(path)), mapped_(mapped) {}

OwnedFile::OwnedFile(OwnedFile&& other) noexcept
    : path_(std::move(other.path_)),
      mapped_(std::exchange(other.mapped_, {})),
      named_(std::exchange(other.named_, false)) {}

OwnedFile& OwnedFile::operator=(OwnedFile&& other) noexcept {
  OwnedFile taken(std::move(other));
  std::swap(path_, taken.path_);
  std::swap(mapped_, taken.mapped_);
  std::swap(named_, taken.named_);
  return *this;
}

OwnedFile::~OwnedFile() {
  unlink();
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

void OwnedFile::unlink() {
  if (std::exchange(named_, false)) ::unlink(path_.c_str());
}

OwnedFile OwnedFile::create(std::size_t bytes, const fs::path& folder) {
  fs::path path = folder / new_name();
  const File file(path, O_CREAT | O_EXCL | O_RDWR);
  if (file.fd() < 0) {
    throw MemoryError(
        fmt::format("no memory can be shared in {}: {}", folder.string(), text_of(errno)));
  }
  try {
    reserve(file, bytes, path);
    const std::span<std::byte> mapped = map(file, bytes, PROT_READ | PROT_WRITE, path);
    return {std::move(path), mapped};
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

void OwnedFile::grow(std::size_t bytes) {
  const File file(path_, O_RDWR);
  if (file.fd() < 0) {
    throw MemoryError(fmt::format("{} is gone: {}", path_.string(), text_of(errno)));
  }
  reserve(file, bytes, path_);
  void* at = mremap(mapped_.data(), mapped_.size(), bytes, MREMAP_MAYMOVE);
  if (at == MAP_FAILED) {
    throw MemoryError(fmt::format("{} cannot be mapped: {}", path_.string(), text_of(errno)));
  }
  mapped_ = {static_cast<std::byte*>(at), bytes};
}

MappedFile::MappedFile(const fs::path& path, Access access) {
  const bool writes = access == Access::kWrite;
  // A pipe of that name would keep us waiting.
  const File file(path, (writes ? O_RDWR : O_RDONLY) | O_NONBLOCK);
  if (file.fd() < 0) {
    throw MemoryError(fmt::format("{} cannot be opened: {}", path.string(), text_of(errno)));
  }
  struct stat facts {};
  if (fstat(file.fd(), &facts) != 0 || !is_ours(facts) || facts.st_size == 0) {
    throw MemoryError(fmt::format("{} is another user's, or no file", path.string()));
  }
  mapped_ = map(file, static_cast<std::size_t>(facts.st_size),
                writes ? PROT_READ | PROT_WRITE : PROT_READ, path);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : mapped_(std::exchange(other.mapped_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(mapped_, taken.mapped_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

bool is_owned_name(std::string_view name) {
  return name.starts_with(kPrefix) && name.size() <= kMaxOwnedName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
         });
}

std::optional<ProcessName> owner_of(std::string_view name) {
  if (!is_owned_name(name)) return std::nullopt;
  ProcessName owner;
  std::uint64_t space = 0;
  const int read = std::sscanf(std::string(name).c_str(), "pullman.%" SCNu64 ".%d.%" SCNu64 ".",
                               &space, &owner.id, &owner.started);
  if (read != 3 || space != process_namespace()) return std::nullopt;
  return owner;
}

std::size_t sweep(const fs::path& folder) {
  std::size_t removed = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const auto owner = owner_of(entry.path().filename().string());
    struct stat facts {};
    if (!owner || lstat(entry.path().c_str(), &facts) != 0 || !may_be_removed(facts)) {
      continue;
    }
    if (has_ended(*owner)) removed += ::unlink(entry.path().c_str()) == 0;
  }
  return removed;
}

}  // namespace pullman::shm
