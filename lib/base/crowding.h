// Knows whether other threads want the processor on which a thread polls: a yield returns late
// then.
//
// Threads that poll, too, yield in their turn, and this one should yield soon. A thread that
// computes keeps the processor for a time slice, some milliseconds, and a yield would cost that
// each time; a thread that sleeps instead is let in as soon as something wakes it.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace pullman {

class Crowding {
 public:
  // Notes that a yield that ended at `now` took so long.
  void note_yield(Instant now, Duration took) {
    if (took < kSwitch) return;
    if (took < kSlice) {
      polled_until_ = now + kPolledFor;
      return;
    }
    // What happens once is soon forgotten, what goes on is not tried often.
    pause_ = now < computed_until_ + pause_ ? std::min(2 * pause_, kLongestPause) : kLeastPause;
    computed_until_ = now + pause_;
  }

  // Returns whether others have polled here lately.
  bool others_poll(Instant now) const { return now < polled_until_; }
  // Returns whether others have computed here lately. It becomes false from time to time, so that
  // the next yield tells whether they still do.
  bool others_compute(Instant now) const { return now < computed_until_; }

 private:
  // A yield that lets nobody in takes less than this, one that lets somebody in takes two changes
  // of threads.
  static constexpr Duration kSwitch = std::chrono::microseconds(2);
  // No thread that polls runs for as long as this, none that computes for less: the least time
  // slice of Linux is 750 us.
  static constexpr Duration kSlice = std::chrono::microseconds(500);
  static constexpr Duration kPolledFor = std::chrono::milliseconds(1);
  static constexpr Duration kLeastPause = std::chrono::milliseconds(4);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(256);

  Instant polled_until_{};
  Instant computed_until_{};
  Duration pause_{};
};

}  // namespace pullman
