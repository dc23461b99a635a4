// Chooses the rail for the next packets: the one that is expected to deliver them first.
//
// A rail delivers `window` packets in a round trip, after those it has in flight. If the best rail
// has no room now, another takes the packets only if it will deliver them before the best one could
// deliver all that is left (earliest completion first: Lim et al., CoNEXT 2017). So rails of
// unequal speed finish a message together. Pure; does not know links, packets or peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace pullman::failover {

struct Load {
  Duration rtt{};               // smoothed; 0 before the first sample
  std::uint32_t window = 1;     // the largest number of packets in flight
  std::uint32_t in_flight = 0;  // packets
  bool may_send = false;        // now

  // Returns the expected time until this many more packets have been delivered.
  Duration time_for(std::uint64_t packets) const;
};

inline constexpr std::size_t kNoRail = ~std::size_t{0};

// Returns the rail for the next packets of a long message. `left` counts the packets of it, and of
// what follows it, that have not been sent yet. Returns kNoRail if no rail may send, or if it is
// better to wait for one that may not send now.
std::size_t rail_for_bulk(std::span<const Load> rails, std::uint64_t left);

// Returns the rail for a small message: of those that may send, the one with the lowest RTT.
// `preferred`, the rail returned last, is kept while no other is clearly better. Returns kNoRail if
// none may send.
std::size_t rail_for_small(std::span<const Load> rails, std::size_t preferred);

}  // namespace pullman::failover
