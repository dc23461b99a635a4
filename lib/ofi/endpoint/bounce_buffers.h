// Bounce buffers: a program that waits for each of its sends gets its buffer back when the message
// is copied, not when it is acknowledged. There are few, so a program that sends many messages at
// once has few of them copied.
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
    if (used_ == buffers_.size()) return nullptr;
    std::unique_ptr<std::byte[]>& buffer = buffers_[used_];
    if (buffer == nullptr) buffer = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    ++used_;
    return buffer.release();
  }
  void give_back(std::byte* buffer) { buffers_[--used_].reset(buffer); }

 private:
  std::array<std::unique_ptr<std::byte[]>, 4> buffers_;  // the unused ones are at the end
  std::size_t used_ = 0;
};

}  // namespace pullman::ofi
