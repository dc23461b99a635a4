// Memory aligned to a cache line.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace pullman {

inline constexpr std::size_t kCacheLine = 64;

constexpr std::size_t whole_lines(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

struct FreeAligned {
  void operator()(std::byte* bytes) const {
    ::operator delete (bytes, std::align_val_t{kCacheLine});
  }
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeAligned>;

// Returns uninitialised memory: pages that are never touched cost nothing.
inline AlignedBytes make_aligned_bytes(std::size_t bytes) {
  return AlignedBytes(
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kCacheLine})));
}

}  // namespace pullman
