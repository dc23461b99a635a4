// What a device's queue refuses (ENOBUFS) without being full: a burst that is longer than the queue
// may ever be, and packets for one destination that a filter drops behind it, or that has no place
// in a full table of neighbours. The kernel says the same of all of them; time tells. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nic/port.h"

namespace pullman::nic::udp {

// A port's packets leave in order: one that were offered for ever would hold back everybody's.
class Refusals {
 public:
  // A packet for `to` was refused again. True: often enough in a row for it to be given up, as a
  // full queue would have had room; those behind it that go there have less patience.
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

// How long bursts may be: half as long where one was refused and its first packets were not, longer
// again after many calls.
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
