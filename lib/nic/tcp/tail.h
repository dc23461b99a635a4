// An incomplete datagram at the end of a stream: its bytes stay where they were received or, if
// buffers run out, in memory of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic/receive_slab.h"

namespace pullman::nic::tcp {

class Tail {
 public:
  Tail() = default;
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  ~Tail() { clear(); }

  std::span<const std::byte> bytes() const { return bytes_; }
  // The buffer that holds the bytes; there is none if slab() is null.
  ReceiveSlab* slab() const { return slab_; }
  std::uint32_t buffer() const { return buffer_; }

  // Takes over one use of the buffer, and gives it back when the tail is cleared.
  void leave_in(ReceiveSlab& slab, std::uint32_t buffer, std::span<const std::byte> bytes) {
    clear();
    slab_ = &slab;
    buffer_ = buffer;
    bytes_ = bytes;
  }

  void copy(std::span<const std::byte> bytes) {
    std::vector<std::byte> own(bytes.begin(), bytes.end());
    clear();
    own_ = std::move(own);
    bytes_ = own_;
  }

  void clear() {
    if (slab_ != nullptr) slab_->release(buffer_, 1);
    slab_ = nullptr;
    own_ = {};
    bytes_ = {};
  }

  // Leaves the buffer's use to the caller.
  void hand_over() {
    slab_ = nullptr;
    clear();
  }

 private:
  std::span<const std::byte> bytes_;
  ReceiveSlab* slab_ = nullptr;
  std::uint32_t buffer_ = 0;
  std::vector<std::byte> own_;
};

}  // namespace pullman::nic::tcp
