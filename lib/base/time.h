// Time as a value. The core is passed the time (`progress(now)`) and cannot read a clock, because
// this time line has no now(). Only the context, at the top, owns a clock.
#pragma once

#include <chrono>

namespace pullman {

// What std::chrono requires of a clock, without now().
struct Timeline {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline, duration>;
  static constexpr bool is_steady = true;
};

using Instant = Timeline::time_point;
using Duration = std::chrono::nanoseconds;

inline constexpr Instant kNever = Instant::max();

}  // namespace pullman
