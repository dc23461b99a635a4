// Tells numbers that came before from new ones: keeps the highest number, and which of the 64 up to
// it have come (RFC 4303, 3.4.3). A number below those counts as one that came before.
#pragma once

#include <cstdint>

#include "base/sequence.h"

namespace pullman::reliability {

class ReplayWindow {
 public:
  static constexpr std::uint64_t kNumbers = 64;

  // Returns the number with these low 32 bits that is nearest to the next one expected.
  PacketNumber number_of(std::uint32_t low) const { return expand(low, next_); }
  bool is_new(PacketNumber number) const {
    if (number >= next_) return true;
    const std::uint64_t back = next_ - 1 - number;
    return back < kNumbers && (come_ >> back & 1) == 0;
  }
  // Notes a number that is new.
  void note(PacketNumber number) {
    if (number >= next_) {
      const std::uint64_t by = number + 1 - next_;
      come_ = by < kNumbers ? come_ << by | 1 : 1;
      next_ = number + 1;
    } else {
      come_ |= std::uint64_t{1} << (next_ - 1 - number);
    }
  }

 private:
  PacketNumber next_ = 0;   // one past the highest number that came
  std::uint64_t come_ = 0;  // bit i: next_ - 1 - i has come
};

}  // namespace pullman::reliability
