// When the rest of a received batch is left for the next turn: when messages find no receive, and
// the program has just been told of many others, so that it is about to post.
//
// A message that finds none is held and copied twice: a receiver that has fallen behind is slower,
// and stays behind. What is left is not acknowledged meanwhile. So there is no pause for a program
// that was told of few, and for a while none after one in vain, when the program took none of what
// it had left waiting, or when something is left for long. Knows counts and times, no packets.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"
#include "message/rx/inbox.h"

namespace pullman::engine {

class ReceiveBackpressure {
 public:
  static constexpr std::uint64_t kWorth = 16;  // messages, of this turn and the last
  static constexpr Duration kLongest = std::chrono::milliseconds(2);
  static constexpr std::uint32_t kOff = 1024;  // packets, after a pause in vain
  static constexpr unsigned kMaxUntimed = 16;  // turns in a row

  // A turn is about to take what has come; `left`: the last one left something.
  void begin_turn(Instant now, const message::InboxCounters& told, bool left) {
    lately_ = std::exchange(before_, told.messages);
    paused_ = false;
    if (!left) since_ = now;
    if (now > since_ + kLongest) stop();
  }

  // A packet had a message that found no receive. Whether to leave those behind it.
  bool due(const message::InboxCounters& told) {
    if (paused_) return true;  // on another channel
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

  // Whether timers wait in a turn that leaves something, or had something left. But several NICs
  // may leave something in turn, for as long as they like.
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

  std::uint64_t before_ = 0;         // messages told of before this turn
  std::uint64_t lately_ = 0;         // and before the last
  std::uint64_t caught_up_ = kNone;  // at the last pause
  Instant since_{};                  // when the last turn began that had nothing left
  bool paused_ = false;              // this turn
  std::uint32_t off_ = 0;            // so many packets more
  unsigned untimed_ = 0;             // turns in a row
};

}  // namespace pullman::engine
