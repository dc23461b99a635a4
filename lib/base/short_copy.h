// Copies short byte strings where latency matters.
//
// A call of memcpy() touches three cold cache lines, and branches on the length, for two moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pullman {

// Does what memcpy() does; `bytes` may be 0. For 8 to 16 bytes the two moves may overlap.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (bytes - kWord <= kWord) [[likely]] {
    const std::size_t last = bytes - kWord;
    std::memcpy(to, from, kWord);
    std::memcpy(to + last, from + last, kWord);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace pullman
