// Random bits from a given seed: SplitMix64 (Steele, Lea, Flood 2014). Small, fast and
// reproducible, so a simulation replays from its seed. A few outputs reveal all others, so this is
// for tests only; random bits that leave the process come from KeyedRandom.
#pragma once

#include <cstdint>

namespace pullman {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound > 0. The modulo bias is below 2^-32 for every bound used here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

  // True with probability `millionths` / 1e6.
  bool chance(std::uint64_t millionths) { return below(1'000'000) < millionths; }

 private:
  std::uint64_t state_;
};

}  // namespace pullman
