// Knows when the program last polled, and for how long it had not: time for which packets may have
// waited unread is not the network's delay (wire.md 2.13).
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "wire/header.h"

namespace pullman::engine {

class PollClock {
 public:
  explicit PollClock(Instant now) : polled_until_(now) {}

  // A turn begins.
  void begin_turn(Instant now) {
    unpolled_ = std::min(now - polled_until_, kMaxUnpolled);
    poll_gap_ = wire::poll_gap_of(static_cast<std::uint64_t>(unpolled_.count()));
    polled_until_ = now;
  }
  // The program has watched until `now`: had anything come before, a turn would have begun.
  void watched(Instant now) { polled_until_ = now; }

  // Returns when the program last polled: in a turn, the time of that turn.
  Instant polled_until() const { return polled_until_; }
  // Returns how long the program had not polled before this turn.
  Duration unpolled() const { return unpolled_; }
  // Returns the same, as the wire encodes it.
  wire::PollGap poll_gap() const { return poll_gap_; }

 private:
  // At most this much of our own absence is taken off the network's delay. Between its time slices
  // a process is away for tens of milliseconds where many share a processor.
  static constexpr Duration kMaxUnpolled = std::chrono::milliseconds(128);

  Instant polled_until_;  // what came before has been read
  Duration unpolled_{};
  wire::PollGap poll_gap_{};
};

}  // namespace pullman::engine
