// Decides when the rest of a received batch is left for the next turn: when messages are unexpected
// while the program has just been told of many completed ones, so that it is about to post
// receives.
//
// An unexpected message is held and copied twice, so a receiver that has fallen behind gets slower
// and stays behind. Packets that are left are not acknowledged meanwhile. So there is no pause if
// the program was told of few messages, and none for a while after an ineffective pause: one after
// which the program received none of the unexpected messages, or in which packets were left for
// long. Knows counts and times, no packets.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"
#include "message/rx/inbox.h"

namespace pullman::engine {

class ReceiveBackpressure {
 public:
  static constexpr std::uint64_t kWorth = 16;  // completed messages, in this turn and the last
  static constexpr Duration kLongest = std::chrono::milliseconds(2);
  static constexpr std::uint32_t kOff = 1024;  // packets, after an ineffective pause
  static constexpr unsigned kMaxUntimed = 16;  // turns in a row

  // Called before a turn receives. `left`: the last turn left packets.
  void begin_turn(Instant now, const message::InboxCounters& told, bool left) {
    lately_ = std::exchange(before_, told.messages);
    paused_ = false;
    if (!left) {
      since_ = now;
    } else if (now > since_ + kLongest) {
      stop();
    }
  }

  // Called after a packet with an unexpected message. Returns whether to leave the packets behind
  // it.
  bool due(const message::InboxCounters& told) {
    if (paused_) return true;  // another channel has paused this turn
    if (told.messages - lately_ < kWorth) return false;
    if (off_ != 0) {
      --off_;
      return false;
    }
    if (told.caught_up == caught_up_) {
      stop();
      return false;
    }
    caught_up_ = told.caught_up;
    return paused_ = true;
  }

  // Returns whether timers wait in a turn that leaves packets, or began with some left. The wait is
  // bounded, since several NICs may leave packets in turn without end.
  bool holds_timers(bool left) {
    if (left && ++untimed_ < kMaxUntimed) return true;
    untimed_ = 0;
    return false;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  void stop() {
    caught_up_ = kNone;
    off_ = kOff;
  }

  std::uint64_t before_ = 0;         // messages completed before this turn
  std::uint64_t lately_ = 0;         // messages completed before the last turn
  std::uint64_t caught_up_ = kNone;  // InboxCounters::caught_up at the last pause
  Instant since_{};                  // when the last turn began that had nothing left
  bool paused_ = false;              // this turn
  std::uint32_t off_ = 0;            // packets until the next pause is allowed
  unsigned untimed_ = 0;             // turns in a row
};

}  // namespace pullman::engine
