// Sequence arithmetic: the one place that knows how counters that wrap are compared. Packet numbers
// and message ids are 64 bits in memory and never wrap; the wire carries their low 32 bits.
#pragma once

#include <cstdint>

namespace pullman {

using PacketNumber = std::uint64_t;  // counts the packets of one link, never used twice
using MessageId = std::uint64_t;     // counts the messages from one peer to another

// The 64-bit number nearest to `reference` whose low 32 bits are `low` (wire.md 2.5). Right as long
// as the true number is within 2^31 of the reference; every window here is far narrower.
constexpr std::uint64_t expand(std::uint32_t low, std::uint64_t reference) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(reference));
  return reference + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance));
}

constexpr std::uint32_t low32(std::uint64_t number) {
  return static_cast<std::uint32_t>(number);
}

}  // namespace pullman
