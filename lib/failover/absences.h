// Knows whether a program has lately often not polled for long. Others have its processor then, so
// that the kernel may be late, too; or it computes, which cannot be told apart.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"
#include "wire/header.h"

namespace pullman::failover {

class Absences {
 public:
  // Longer than threads that poll in turn keep each other out. The least time slice is 750 us.
  static constexpr Duration kLong = std::chrono::microseconds(500);
  // Returns whether this gap, which the peer told, is that long.
  static bool is_long(wire::PollGap gap) {
    return gap > wire::poll_gap_of(static_cast<std::uint64_t>(kLong.count()));
  }

  // Notes that a long absence ended now. Of those that end within kLong of each other one counts:
  // a peer tells of one in several packets.
  void note(Instant now) {
    if (now - last_ < kLong) return;
    last_ = now;
    if (now >= forgotten_at_) count_ = 0;
    if (count_ < kMany) ++count_;
    if (count_ == kMany) many_until_ = now + kRemembered;
    forgotten_at_ = now + kRemembered / kMany;
  }
  // Returns whether there were many.
  bool many(Instant now) const { return now < many_until_; }

 private:
  static constexpr std::uint8_t kMany = 8;
  static constexpr Duration kRemembered = std::chrono::seconds(1);

  Instant last_{};
  Instant forgotten_at_{};  // without another one until then they do not count any more
  Instant many_until_{};
  std::uint8_t count_ = 0;
};

}  // namespace pullman::failover
