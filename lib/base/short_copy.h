// Copies of bytes that are few where latency counts.
//
// memcpy() is elsewhere and looks first how many there are: with the call three cold lines of the
// cache, for two moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pullman {

// memcpy(), of no bytes, too. Of 8 to 16 the two moves may overlap.
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
