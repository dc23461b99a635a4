// Detects that a program that has blocked peers stands still: nothing has moved for so long that
// nothing will, unless it is told. Knows counts and times, no peers.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/time.h"

namespace pullman::engine {

class Standstill {
 public:
  // Only time in which the program calls counts: a long time between two calls counts as one look.
  static constexpr unsigned kLooks = 8;
  static constexpr Duration kBetweenLooks = std::chrono::milliseconds(1250);

  struct Movement {
    std::uint64_t done = 0;  // counts what has come, been received and been sent
    bool under_way = false;  // a message is being sent or received
  };
  enum class Found : std::uint8_t {
    kMoving,         // moving, or not still for long enough
    kStanding,       // nothing has moved for kLooks looks
    kStillStanding,  // nothing has moved since that was last said
  };

  // Called when a peer is blocked and none was.
  void begin(Instant now, std::uint64_t done) {
    done_ = done;
    looks_ = 0;
    said_ = false;
    due_ = now + kBetweenLooks;
  }
  Instant due() const { return due_; }

  // Called when due() has come.
  Found look(Instant now, const Movement& movement) {
    due_ = now + kBetweenLooks;
    if (movement.done != done_ || movement.under_way) {
      done_ = movement.done;
      looks_ = 0;
      said_ = false;
      return Found::kMoving;
    }
    if (++looks_ < kLooks) return Found::kMoving;
    looks_ = 0;
    return std::exchange(said_, true) ? Found::kStillStanding : Found::kStanding;
  }

 private:
  std::uint64_t done_ = 0;
  unsigned looks_ = 0;  // that saw nothing move
  bool said_ = false;   // kStanding was returned
  Instant due_{};
};

}  // namespace pullman::engine
