// Which rail takes what is to leave next: the one that is expected to deliver it first.
//
// A rail delivers `window` packets in a round trip, behind those it has in flight. Where the best
// one has no room just now, another takes the packets only if it delivers them before the best one
// would have delivered all that is left (earliest completion first: Lim et al., CoNEXT 2017); so
// rails of unequal speed end a message together. Pure; does not know links, packets or peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace pullman::failover {

struct Load {
  Duration rtt{};               // smoothed
  std::uint32_t window = 1;     // packets that may be in flight
  std::uint32_t in_flight = 0;  // packets
  bool may_send = false;        // now

  // From now until so many more packets have been delivered.
  Duration time_for(std::uint64_t packets) const;
};

inline constexpr std::size_t kNoRail = ~std::size_t{0};

// The rail for the next packets of a long message; `left`: packets of it and of what follows it
// that have not left yet. kNoRail: none may, or it is better to wait for one that may not.
std::size_t rail_for_bulk(std::span<const Load> rails, std::uint64_t left);

// The rail for a small message: the one with the shortest round trip that may send. `preferred`,
// the last answer, is kept while no other is clearly better. kNoRail: none may.
std::size_t rail_for_small(std::span<const Load> rails, std::size_t preferred);

}  // namespace pullman::failover
