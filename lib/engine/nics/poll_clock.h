// When the program looked last, and for how long it did not: time in which packets may have come,
// and waited, is not the network's (wire.md 2.5).
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
  // Had anything come before `now`, a turn would have begun.
  void watched(Instant now) { polled_until_ = now; }

  // In a turn: its time.
  Instant polled_until() const { return polled_until_; }
  // How long nobody had looked before this turn.
  Duration unpolled() const { return unpolled_; }
  // That, as peers are told.
  wire::PollGap poll_gap() const { return poll_gap_; }

 private:
  // So much of our own absence is told from the network's delay at most.
  static constexpr Duration kMaxUnpolled = std::chrono::milliseconds(4);

  Instant polled_until_;  // what had come by then has been taken
  Duration unpolled_{};
  wire::PollGap poll_gap_{};
};

}  // namespace pullman::engine
