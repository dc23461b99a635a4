// Random bytes from the kernel, of which keys can be made.
#pragma once

#include <sys/random.h>

#include <cstddef>
#include <span>

namespace pullman::crypto {

// Returns false if the kernel gives none.
[[nodiscard]] inline bool fill_randomly(std::span<std::byte> out) {
  return getrandom(out.data(), out.size(), 0) == static_cast<ssize_t>(out.size());
}

}  // namespace pullman::crypto
