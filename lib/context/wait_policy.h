// Decides what a call that waits does between two turns: make the next one at once, yield, or
// sleep. A thread that makes turn after turn sees an answer first, but keeps others from the
// processor; and what it uses of its share while it waits, it lacks when the answer comes. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/crowding.h"
#include "base/time.h"

namespace pullman {

class WaitPolicy {
 public:
  // For how long a call has received nothing. Each call that waits has its own.
  struct Silence {
    Instant since;            // the last turn that received something, or the beginning
    std::uint32_t turns = 0;  // turns since then
  };

  enum class Rest : std::uint8_t {
    kNone,   // the next turn follows at once
    kYield,  // another thread may want the processor
    kSleep,  // until something comes, since nothing has for long
    kNap,    // the same, since others compute here: the thread may run long after it was woken
  };

  // `sleep_after`: as in Config.
  explicit WaitPolicy(Duration sleep_after) : sleep_after_(sleep_after) {}

  // Notes that a turn at `now` has received that much, and returns what to do before the next.
  Rest after_turn(Instant now, std::size_t received, Silence& silence) const {
    if (received != 0) {
      silence = {.since = now};
      return Rest::kNone;
    }
    ++silence.turns;
    const bool gives_way =
        silence.turns >= (crowding_.others_poll(now) ? kTurnsBesidePollers : kTurns);
    if (gives_way && crowding_.others_compute(now)) return Rest::kNap;
    if (sleep_after_.count() != 0 && now - silence.since >= sleep_after_) return Rest::kSleep;
    return gives_way ? Rest::kYield : Rest::kNone;
  }
  // Notes that a yield that ended at `now` took so long.
  void note_yield(Instant now, Duration took) { crowding_.note_yield(now, took); }

 private:
  // Idle turns before others are let in, some 40 us of them, also where others compute (decision
  // 0026); and where others are known to poll.
  static constexpr std::uint32_t kTurns = 128;
  static constexpr std::uint32_t kTurnsBesidePollers = 8;

  const Duration sleep_after_;
  Crowding crowding_;
};

}  // namespace pullman
