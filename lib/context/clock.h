// The clock of a context. The core is passed what it says as a value.
#pragma once

#include <time.h>

#include "base/time.h"

namespace pullman {

// Reads the clock, which is steady.
inline Instant read_clock() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace pullman
