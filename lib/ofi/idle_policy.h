// Decides what a thread does that polls and finds nothing. Some applications spin on a queue (Open
// MPI's MTL, in any call that blocks) for another process on the same processor, which otherwise
// would run only after a time slice: so it yields. Where others compute on the processor a yield
// costs a time slice itself: then it naps, and whatever arrives lets it in at once. So it does
// beside others that poll once nothing has come for long: they would wait for it at each yield.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/crowding.h"
#include "base/time.h"

namespace pullman::ofi {

class IdlePolicy {
 public:
  enum class Rest : std::uint8_t { kNone, kYield, kNap };

  explicit IdlePolicy(bool wanted) : wanted_(wanted) {}

  // Notes a poll at a time that only polls in a row need: `clock()` returns it. A poll takes about
  // a microsecond, a yield without effect a fifth of that.
  template <typename Clock>
  Rest due(bool found_nothing, Clock clock) {
    empty_polls_ = found_nothing ? empty_polls_ + 1 : 0;
    if (!wanted_ || empty_polls_ % kEveryWithOthers != 0 || empty_polls_ == 0) [[likely]]
      return Rest::kNone;
    return due_at(clock());
  }
  // Notes that a yield that ended at `now` took so long.
  void note_yield(Instant now, Duration took) {
    crowding_.note_yield(now, took);
    asked_at_ = now;
  }

 private:
  static constexpr unsigned kPatience = 64;
  static constexpr unsigned kEvery = 8;
  // Beside others that poll.
  static constexpr unsigned kPatienceWithOthers = 2;
  static constexpr unsigned kEveryWithOthers = 2;
  static constexpr Duration kLongIdle = std::chrono::microseconds(500);
  // A thread that polls less often does something in between, for which a nap is too long.
  static constexpr Duration kSpinsWithin = std::chrono::microseconds(25);

  Rest due_at(Instant now) {
    const bool spins = now - asked_at_ < kSpinsWithin;
    asked_at_ = now;
    if (empty_polls_ == kPatienceWithOthers) idle_since_ = now;
    const bool others_poll = crowding_.others_poll(now);
    if (!others_poll && (empty_polls_ < kPatience || empty_polls_ % kEvery != 0))
      return Rest::kNone;
    const bool others_compute = crowding_.others_compute(now);
    const bool in_the_way = others_poll && now - idle_since_ >= kLongIdle;
    if (spins && (others_compute || in_the_way)) return Rest::kNap;
    return others_compute ? Rest::kNone : Rest::kYield;
  }

  const bool wanted_;
  unsigned empty_polls_ = 0;  // consecutive ones
  Instant idle_since_{};      // when they began
  Instant asked_at_{};        // when due_at() was called last, or the yield ended
  Crowding crowding_;
};

}  // namespace pullman::ofi
