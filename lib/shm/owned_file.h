// Memory in a file that this process owns and others may map: in /dev/shm, or a folder like it.
//
// The file is named after the process, so that it can be told whose it is, and is only for
// processes of the same user (mode 0600). It is removed with the object; if the process dies before
// that, sweep() of any later process of that user removes it.
//
// All its pages exist when it has been created: where the folder is full, creating it fails, and
// nothing that is written to it later ends by SIGBUS.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "shm/process.h"

namespace pullman::shm {

inline constexpr std::string_view kFolder = "/dev/shm";

// No memory can be had; what() says why, and what can be done about it.
class MemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OwnedFile {
 public:
  // Creates one with that many bytes, which are zero. Throws MemoryError.
  static OwnedFile create(std::size_t bytes, const std::filesystem::path& folder = kFolder);
  OwnedFile(OwnedFile&& other) noexcept;
  OwnedFile& operator=(OwnedFile&& other) noexcept;
  ~OwnedFile();

  std::span<std::byte> bytes() const { return mapped_; }
  const std::filesystem::path& path() const { return path_; }
  // Makes it longer; bytes() may be elsewhere then. Throws MemoryError, and bytes() is as before.
  void grow(std::size_t bytes);
  // Removes the name; the memory stays mapped wherever it is.
  void unlink();

 private:
  OwnedFile(std::filesystem::path path, std::span<std::byte> mapped);

  std::filesystem::path path_;
  std::span<std::byte> mapped_;
  bool named_ = true;
};

// Memory that another process owns, mapped for as long as the object is there.
class MappedFile {
 public:
  enum class Access { kRead, kWrite };
  // Throws MemoryError if it is not there, or another user's.
  MappedFile(const std::filesystem::path& path, Access access);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<std::byte> bytes() const { return mapped_; }

 private:
  std::span<std::byte> mapped_;
};

inline constexpr std::size_t kMaxOwnedName = 96;
// Returns whether the name is one of such a file, and leads out of no folder.
bool is_owned_name(std::string_view name);
// Returns the process that such a file belongs to, or nothing if this process cannot see it: a
// container has process ids of its own.
std::optional<ProcessName> owner_of(std::string_view name);

// Removes the files of processes of this user that are gone, as far as this process sees them.
// Returns how many.
std::size_t sweep(const std::filesystem::path& folder = kFolder);

}  // namespace pullman::shm
