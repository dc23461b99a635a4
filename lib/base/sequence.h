// Sequence arithmetic: the one place that deals with counters that wrap. Packet numbers and message
// ids have 64 bits in memory and never wrap; the wire carries their low 32 bits.
#pragma once

#include <cstdint>

namespace pullman {

using PacketNumber = std::uint64_t;  // counts the packets of one link, never used twice
using MessageId = std::uint64_t;     // counts the messages from one peer to another

// Returns the 64-bit number nearest to `reference` whose low 32 bits are `low` (wire.md 2.5). It is
// right if the true number is within 2^31 of the reference; every window here is far smaller.
constexpr std::uint64_t expand(std::uint32_t low, std::uint64_t reference) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(reference));
  return reference + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

constexpr std::uint32_t low32(std::uint64_t number) {
  return static_cast<std::uint32_t>(number);
}

}  // namespace pullman
