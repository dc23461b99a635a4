// Which rail of a peer carries what, and whether anything can leave now. Masks of ports have a bit
// for each of our NICs: one that is full has refused what was not to wait, this turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/peer/peer_queries.h"

namespace pullman::engine {

// What would leave if a peer were served, had the ports room and the pool packets.
enum class Sends : std::uint8_t {
  kNothing,    // no work, credit or window
  kPerhaps,    // an ACK may be waited for, or what others gave back is its to borrow: it hears of
               // that when it is blocked, or with what comes next
  kSomething,  // and it must be among those that are ready
};

// Of a peer with one rail.
Sends home_can_send(const Peer& peer);
// As many packets as one turn sends to one peer. The last few of a message leave with the rest of
// it, since what else a turn does, polling among it, is much for them to wait for.
std::size_t share_of_turn(const Rail& rail);
// The window lets less leave than half a burst, and ACKs of what is under way will allow more.
bool fills_no_burst(const Rail& rail);

// --- of a peer with several rails

Sends rails_can_send(Peer& peer);
// Null: none has room.
Rail* rail_for_bulk(Peer& peer, std::uint32_t full_ports);
// And remembers it as the one that small messages take.
Rail* rail_for_small(Peer& peer, std::uint32_t full_ports);
// Others have filled the ports of its rails this turn: the next one goes on. Nothing else would ask
// for it where nothing of the peer's is in flight.
bool waits_for_port(Peer& peer, bool small, std::uint32_t full_ports);
void note_sent(const Rail& rail, std::size_t packets, std::size_t bytes);

// --- of any

// Small messages are packed before it is known which rail they take: the shortest packet of those
// in use will do for all.
void settle_sizes(Peer& peer);

}  // namespace pullman::engine
