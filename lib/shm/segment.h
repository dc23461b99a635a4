// Memory that two processes of one user on one host have mapped: a file in /dev/shm.
//
// One process creates it and tells the other, by a way of its own, the name and the secret that
// stands at its beginning; the other maps it if it holds that secret. A name without the secret
// proves nothing: containers may have a /dev/shm each. The name is removed as soon as the other has
// mapped it.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "shm/owned_file.h"

namespace pullman::shm {

using Secret = std::array<std::byte, 16>;

class Segment {
 public:
  // Creates one with that many usable bytes, which are zero, and that secret. `folder` is
  // /dev/shm but in tests. Throws MemoryError.
  static Segment create(std::size_t bytes, const Secret& secret,
                        const std::filesystem::path& folder = kFolder);
  // Maps one that another process has created. Throws MemoryError if it is not there, is another
  // user's, has another length or another secret.
  static Segment open(std::string_view name, std::size_t bytes, const Secret& secret,
                      const std::filesystem::path& folder = kFolder);

  // Returns the usable bytes; they begin at a cache line.
  std::span<std::byte> bytes() const { return bytes_; }
  // Returns the name to be told to the other process, at most kMaxName characters.
  const std::string& name() const { return name_; }
  // Removes the name, if it is ours; the memory stays mapped wherever it is.
  void unlink();

  static constexpr std::size_t kMaxName = kMaxOwnedName;

 private:
  using File = std::variant<OwnedFile, MappedFile>;
  Segment(File file, std::string name, std::span<std::byte> bytes);

  File file_;
  std::string name_;
  std::span<std::byte> bytes_;
};

}  // namespace pullman::shm
