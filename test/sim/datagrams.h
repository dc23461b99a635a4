// The memory of datagrams under way: slots are reused, so that a run allocates only at its start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace pullman::sim {

class Datagrams {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xFFFFFFFF;

  Slot make(std::span<const std::byte> head, std::span<const std::byte> payload = {}) {
    const Slot slot = take();
    std::vector<std::byte>& bytes = slots_[slot];
    bytes.resize(head.size() + payload.size());
    if (!head.empty()) std::memcpy(bytes.data(), head.data(), head.size());
    if (!payload.empty()) std::memcpy(bytes.data() + head.size(), payload.data(), payload.size());
    return slot;
  }

  std::vector<std::byte>& bytes(Slot slot) { return slots_[slot]; }

  // Overwrites what the slot held: no datagram may be read after it was given back.
  void release(Slot slot) {
    std::vector<std::byte>& bytes = slots_[slot];
    std::memset(bytes.data(), 0xDD, bytes.size() < 64 ? bytes.size() : 64);
    free_.push_back(slot);
  }

  std::size_t in_use() const { return slots_.size() - free_.size(); }

 private:
  Slot take() {
    if (free_.empty()) {
      slots_.emplace_back();
      return static_cast<Slot>(slots_.size() - 1);
    }
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }

  std::deque<std::vector<std::byte>> slots_;
  std::vector<Slot> free_;
};

}  // namespace pullman::sim
