// What --check writes into messages and expects to find in them: every eight bytes differ, and
// every message differs from every other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace perf {

// Which message: no two messages of one program share a key.
struct PayloadKey {
  std::uint64_t run = 0;     // counts the runs of one program
  std::uint64_t number = 0;  // counts the messages of one run and direction
  bool from_server = false;  // direction

  std::uint64_t seed() const {
    std::uint64_t z = (run << 48) ^ (number << 1) ^ (from_server ? 1 : 0);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 27);
  }
};

inline std::uint64_t payload_word(std::uint64_t seed, std::size_t index) {
  return seed + index * 0x9E3779B97F4A7C15u;
}

inline void fill(std::span<std::byte> bytes, const PayloadKey& key) {
  const std::uint64_t seed = key.seed();
  const std::size_t words = bytes.size() / 8;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = payload_word(seed, i);
    std::memcpy(bytes.data() + i * 8, &word, 8);
  }
  const std::uint64_t tail = payload_word(seed, words);
  if (bytes.size() % 8 != 0) std::memcpy(bytes.data() + words * 8, &tail, bytes.size() % 8);
}

inline bool holds(std::span<const std::byte> bytes, const PayloadKey& key) {
  const std::uint64_t seed = key.seed();
  const std::size_t words = bytes.size() / 8;
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * 8, 8);
    difference |= word ^ payload_word(seed, i);
  }
  const std::uint64_t tail = payload_word(seed, words);
  return difference == 0 && (bytes.size() % 8 == 0 ||
                             std::memcmp(bytes.data() + words * 8, &tail, bytes.size() % 8) == 0);
}

}  // namespace perf
