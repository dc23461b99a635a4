// Whether a program that has blocked peers stands still: nothing has moved for so long that nothing
// will, unless it is told. Knows counts and times, no peers.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"

namespace pullman::engine {

class Standstill {
 public:
  // Of time in which the program calls: of a long time between two calls one look's part counts.
  static constexpr unsigned kLooks = 8;
  static constexpr Duration kBetweenLooks = std::chrono::milliseconds(1250);

  // A peer is blocked, and none was. `moved` counts all that the program has got done.
  void begin(Instant now, std::uint64_t moved) {
    moved_ = moved;
    looks_ = 0;
    due_ = now + kBetweenLooks;
  }
  Instant due() const { return due_; }

  // It is due. True: nothing has moved since begin(), or since this was true, for all the looks.
  bool look(Instant now, std::uint64_t moved) {
    due_ = now + kBetweenLooks;
    if (moved != moved_) looks_ = 0;
    moved_ = moved;
    if (++looks_ < kLooks) return false;
    looks_ = 0;
    return true;
  }

 private:
  std::uint64_t moved_ = 0;
  unsigned looks_ = 0;
  Instant due_{};
};

}  // namespace pullman::engine
