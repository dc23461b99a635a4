// The MEMORY frame: an end offers shared memory to a peer on the same host, or says that it cannot
// join what the peer has offered (wire.md 11).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "wire/frame.h"

namespace pullman::wire {

inline constexpr std::size_t kMemorySecretBytes = 16;
inline constexpr std::size_t kMaxMemoryName = 96;
inline constexpr std::size_t kMaxMemoryBytes =
    kFrameHeadBytes + kMemorySecretBytes + kMaxMemoryName;
// Of a chunk that a record refers to (wire.md 11.5).
inline constexpr std::size_t kMaxReferenceBytes = std::size_t{1} << 22;

struct MemoryOffer {
  std::array<std::byte, kMemorySecretBytes> secret{};
  std::string_view name;  // of the segment; empty: the sender declines what it was offered
};

// Writes at most kMaxMemoryBytes and returns how many. The name has at most kMaxMemoryName bytes.
std::size_t put_memory(std::byte* out, const MemoryOffer& offer);
// Returns nothing if the body is malformed. The name refers to it.
std::optional<MemoryOffer> decode_memory(std::span<const std::byte> body);

}  // namespace pullman::wire
