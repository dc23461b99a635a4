// Tells apart what a device's queue refuses (ENOBUFS) without being full: a burst longer than the
// queue can ever hold; and packets for one destination, which a filter behind it drops or which
// finds no place in a full neighbour table. The kernel reports all alike; only time tells. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nic/port.h"

namespace pullman::nic::udp {

// A port's packets are sent in order: one that is offered again for ever would block all others.
class Refusals {
 public:
  // A packet for `to` was refused again. Returns true if that happened often enough in a row to
  // drop it: a full queue would have had room. Packets for `to` that follow it are dropped sooner.
  bool close_abortively(Destination to) {
    if (to != to_) count_ = 0;
    to_ = to;
    if (++count_ < kPatience) return false;
    count_ = kPatience - kPatienceBehind;
    return true;
  }
  void note_sent(Destination to) {
    if (to == to_) to_ = kInvalidDestination;
  }
  bool any() const { return to_ != kInvalidDestination; }

 private:
  static constexpr std::uint32_t kPatience = 128;
  static constexpr std::uint32_t kPatienceBehind = 8;

  Destination to_ = kInvalidDestination;
  std::uint32_t count_ = 0;
};

// Limits the length of bursts: halves it when a burst was refused and its first packets were not,
// and doubles it after many successful calls.
class BurstLimit {
 public:
  explicit BurstLimit(std::size_t most) : most_(most), bytes_(most) {}

  std::size_t bytes() const { return bytes_; }
  bool is_short() const { return bytes_ < most_; }
  void halve() {
    bytes_ = std::max(bytes_ / 2, kLeast);
    calls_ = 0;
  }
  // A call was not refused.
  void note_sent() {
    if (++calls_ % kCalls == 0) bytes_ = std::min(2 * bytes_, most_);
  }

 private:
  static constexpr std::size_t kLeast = 1024;
  static constexpr std::uint32_t kCalls = 256;

  std::size_t most_;
  std::size_t bytes_;
  std::uint32_t calls_ = 0;
};

}  // namespace pullman::nic::udp
