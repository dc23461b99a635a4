// Bounce buffers: a program that waits for each of its sends gets its buffer back when the message
// is copied, not when it is acknowledged. There are few, so a program that sends many messages at
// once has few of them copied. A peer that shares our memory copies a message itself, without an
// ACK that takes its time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace pullman::ofi {

class BounceBuffers {
 public:
  // A longer message waits for its ACK, which costs as much as a copy.
  static constexpr std::size_t kBytes = 64 * 1024;

  // Returns null if all are in use.
  std::byte* take() {
    if (unused_count_ != 0) return unused_[--unused_count_];
    if (made_ == buffers_.size()) return nullptr;
    buffers_[made_] = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    return buffers_[made_++].get();
  }
  void give_back(std::byte* buffer) { unused_[unused_count_++] = buffer; }

 private:
  std::array<std::unique_ptr<std::byte[]>, 4> buffers_;  // made when they are needed
  std::size_t made_ = 0;
  std::array<std::byte*, 4> unused_;
  std::size_t unused_count_ = 0;
};

}  // namespace pullman::ofi
