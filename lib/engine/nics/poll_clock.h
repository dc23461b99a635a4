// Knows when the program last polled, and for how long it had not: time for which packets may have
// waited unread is not the network's delay (wire.md 2.13). What has come during an absence is read
// in several turns, a few packets in each.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "failover/absences.h"
#include "wire/header.h"

namespace pullman::engine {

class PollClock {
 public:
  explicit PollClock(Instant now) : polled_until_(now) {}

  // A turn begins.
  void begin_turn(Instant now) {
    unpolled_ = now - polled_until_;
    if (unpolled_ >= kAbsence || catches_up_) [[unlikely]] {
      catch_up(now);
      unpolled_ = std::min(unpolled_, kMaxUnpolled);
    }
    polled_until_ = now;
  }
  // Returns whether some of what came during an absence may still be unread.
  bool catches_up() const { return catches_up_; }
  // The turn has polled all channels and found nothing.
  void note_empty() { catches_up_ = false; }
  // The program has watched until `now`: had anything come before, a turn would have begun.
  void watched(Instant now) { polled_until_ = now; }

  // Returns when the program last polled: in a turn, the time of that turn.
  Instant polled_until() const { return polled_until_; }
  // Returns how long the program had not polled before this turn.
  Duration unpolled() const { return unpolled_; }
  const failover::Absences& absences() const { return absences_; }
  // Returns for how long a packet that was just received may have waited before: the same, or
  // longer if it is read behind others that had come during an absence.
  wire::PollGap poll_gap() const {
    const Duration waited =
        catches_up_ ? std::min(polled_until_ - left_at_, kMaxUnpolled) : unpolled_;
    return wire::poll_gap_of(static_cast<std::uint64_t>(waited.count()));
  }

 private:
  // At most this much of our own absence is taken off the network's delay. Between its time slices
  // a process is away for tens of milliseconds where many share a processor.
  static constexpr Duration kMaxUnpolled = std::chrono::milliseconds(128);

  // An absence that is worth remembering until all has been read that came meanwhile.
  static constexpr Duration kAbsence = std::chrono::microseconds(100);
  static_assert(kAbsence <= kMaxUnpolled);

  // To read what has come takes no longer than it took to come, or else the sender is too fast.
  void catch_up(Instant now) {
    if (unpolled_ >= failover::Absences::kLong) absences_.note(now);
    if (unpolled_ >= kAbsence) {
      if (!catches_up_) left_at_ = polled_until_;
      back_at_ = now;
      catches_up_ = true;
    }
    if (now - back_at_ > back_at_ - left_at_) catches_up_ = false;
  }

  Instant polled_until_;  // what came before has been read, unless it catches up
  Duration unpolled_{};
  Instant left_at_{};  // when the absence began of which packets are left
  Instant back_at_{};  // when it ended
  failover::Absences absences_;
  bool catches_up_ = false;
};

}  // namespace pullman::engine
