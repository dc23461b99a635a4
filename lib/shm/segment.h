// Memory that two processes of one user on one host have mapped: a file in /dev/shm.
//
// One process creates it and tells the other, by a way of its own, the name and the secret that
// stands at its beginning; the other maps it if it holds that secret. A name without the secret
// proves nothing: containers may have a /dev/shm each. Only processes of the same user can map it
// (mode 0600).
//
// All its pages exist when it has been created: where /dev/shm is full, creating it fails, and
// nothing that is written to it later ends by SIGBUS. The name is removed as soon as the other has
// mapped it; if the creator dies before that, sweep() of any later process of that user removes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace pullman::shm {

using Secret = std::array<std::byte, 16>;

inline constexpr std::string_view kFolder = "/dev/shm";

// No segment can be had; what() says why, and what can be done about it.
class SegmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Segment {
 public:
  // Creates one with that many usable bytes, which are zero, and that secret. `folder` is
  // /dev/shm but in tests. Throws SegmentError.
  static Segment create(std::size_t bytes, const Secret& secret,
                        const std::filesystem::path& folder = kFolder);
  // Maps one that another process has created. Throws SegmentError if it is not there, is another
  // user's, has another length or another secret.
  static Segment open(std::string_view name, std::size_t bytes, const Secret& secret,
                      const std::filesystem::path& folder = kFolder);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  // Unmaps it, and removes its name if this process created it.
  ~Segment();

  // Returns the usable bytes; they begin at a cache line.
  std::span<std::byte> bytes() const { return bytes_; }
  // Returns the name to be told to the other process, at most kMaxName characters.
  const std::string& name() const { return name_; }
  // Removes the name; the memory stays mapped wherever it is.
  void unlink();

  static constexpr std::size_t kMaxName = 96;

 private:
  Segment(std::filesystem::path path, std::string name, std::span<std::byte> mapped, bool ours);

  std::filesystem::path path_;
  std::string name_;
  std::span<std::byte> mapped_;
  std::span<std::byte> bytes_;
  bool named_ = false;  // the name is ours to remove
};

// Removes the segments of processes of this user that are gone, as far as this process sees them.
// Returns how many.
std::size_t sweep(const std::filesystem::path& folder = kFolder);

}  // namespace pullman::shm
