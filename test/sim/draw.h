// Draws of the simulator: everything random follows from one seed through these.
#pragma once

#include <bit>
#include <chrono>
#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace pullman::sim {

// Uniform in [low, high].
inline std::uint64_t between(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random.below(high - low + 1);
}

// Log-uniform in [low, high]: every power of two is as likely as the next.
inline std::uint64_t log_between(Random& random, std::uint64_t low, std::uint64_t high) {
  const auto least = static_cast<std::uint64_t>(std::bit_width(low));
  const auto most = static_cast<std::uint64_t>(std::bit_width(high));
  const std::uint64_t bits = between(random, least, most);
  const std::uint64_t from = bits == 0 ? 0 : std::uint64_t{1} << (bits - 1);
  const std::uint64_t to = bits == 0 ? 0 : (std::uint64_t{1} << bits) - 1;
  return between(random, from < low ? low : from, to > high ? high : to);
}

inline bool percent(Random& random, std::uint64_t chance) {
  return random.below(100) < chance;
}

inline Duration between(Random& random, Duration low, Duration high) {
  return Duration(static_cast<Duration::rep>(between(
      random, static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()))));
}

inline Duration log_between(Random& random, Duration low, Duration high) {
  return Duration(static_cast<Duration::rep>(log_between(
      random, static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()))));
}

// Makes a generator for one part, so that its draws do not change another part's.
inline Random fork(Random& random) {
  return Random(random.next());
}

}  // namespace pullman::sim
