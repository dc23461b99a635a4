// Receive buffers, each large enough for the largest datagram, or for as many packets as the kernel
// delivers together. The packets of one buffer are lent separately; the buffer is free when the
// last comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_bytes.h"
#include "base/check.h"

namespace pullman::nic {

class ReceiveSlab {
 public:
  static constexpr std::size_t kBytes = 65536;  // size of a buffer

  explicit ReceiveSlab(std::size_t buffers);

  // Returns the `place`-th free buffer. The one given back last comes first, since it is warm.
  // There must be more than `place`.
  std::uint32_t peek(std::size_t place) const { return free_[free_count_ - 1 - place]; }
  std::size_t free() const { return free_count_; }
  std::byte* bytes(std::uint32_t buffer) const { return memory_.get() + buffer * kStride; }

  // Takes the first `count` buffers that peek() shows, which are filled.
  void take(std::size_t count) { free_count_ -= count; }

  // The buffer holds that many packets.
  void share(std::uint32_t buffer, std::uint32_t packets) { users_[buffer] = packets; }

  // Lends one more packet of that buffer.
  void lend(std::uint32_t buffer) { ++users_[buffer]; }

  // This many of its packets are not used any more.
  void release(std::uint64_t buffer, std::uint32_t packets) {
    PULLMAN_CHECK(buffer < users_.size() && users_[buffer] >= packets);
    users_[buffer] -= packets;
    if (users_[buffer] == 0) free_[free_count_++] = static_cast<std::uint32_t>(buffer);
  }

 private:
  // Not a power of two: else the first bytes of all buffers would share a few cache lines.
  static constexpr std::size_t kStride = kBytes + 320;
  static_assert(kStride % kCacheLine == 0);

  AlignedBytes memory_;
  std::vector<std::uint32_t> users_;  // packets of each buffer that are lent, or still to be
  std::vector<std::uint32_t> free_;   // the first free_count_ are free buffers
  std::size_t free_count_;
};

}  // namespace pullman::nic
