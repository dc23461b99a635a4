// The head of a relayed packet: which process it is for, where it began, and which processes it has
// passed (wire.md 13). What follows the head is a packet like those that NICs carry.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/hello.h"

namespace pullman::wire {

// The largest number of connections that a relayed packet passes, one after the other.
inline constexpr std::uint8_t kMaxHops = 8;
inline constexpr std::size_t kRelayFixedBytes = 4;
// The longest head. Addresses in it are IPv4 or IPv6.
inline constexpr std::size_t kMaxRelayBytes = kRelayFixedBytes + 2 * (2 + 22) + kMaxHops * 8;

// Names a process in the record of those that a packet has passed. Drawn at random.
using RelayId = std::uint64_t;

struct RelayHead {
  bool for_data = false;          // for the data channel of its receiver, else the command channel
  std::uint8_t hops = kMaxHops;   // connections that it may still pass, the next one included
  std::uint8_t passed_count = 0;  // its origin is the first
  WireAddress to;                 // of the command channel of the process that it is for
  WireAddress from;               // the same of its origin
  std::array<RelayId, kMaxHops> passed{};

  bool has_passed(RelayId id) const {
    return std::find(passed.begin(), passed.begin() + passed_count, id) !=
           passed.begin() + passed_count;
  }
};

std::size_t relay_bytes(const RelayHead& head);
// `out` has room for relay_bytes(). Returns its end.
std::byte* put_relay(std::byte* out, const RelayHead& head);
// Removes a head from the front of `in`, which then holds the packet. Returns nothing if it is
// malformed, or no packet follows.
std::optional<RelayHead> take_relay(std::span<const std::byte>& in);

}  // namespace pullman::wire
