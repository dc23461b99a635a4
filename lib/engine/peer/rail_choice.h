// Chooses the rail of a peer that carries a packet, and says whether anything can leave now. Masks
// of ports have a bit for each of our NICs. A port is full if it has refused, this turn, packets
// that were not to wait.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/peer/peer_queries.h"

namespace pullman::engine {

// What would leave if a peer were served, provided the ports had room and the pool packets.
enum class Sends : std::uint8_t {
  kNothing,  // there is no work, credit or window
  // The peer may be waiting for an ACK, or other peers gave back memory that it may borrow: it
  // hears of that when it is blocked, or with what is sent next.
  kPerhaps,
  kSomething,  // the peer must be in the list of ready peers
};

// For a peer with one rail.
Sends home_can_send(const Peer& peer);
// Returns how many packets one turn sends to one peer. The last few packets of a message leave in
// the same turn as the rest, since all else that a turn does, polling included, is long for them to
// wait.
std::size_t share_of_turn(const Rail& rail);
// Returns whether the window lets less than half a burst leave, while ACKs of what is in flight
// will allow more.
bool fills_no_burst(const Rail& rail);

// --- of a peer with several rails

Sends rails_can_send(Peer& peer);
// Returns the rail for chunks; null if none has room.
Rail* rail_for_bulk(Peer& peer, std::uint32_t full_ports);
// Returns the rail for small messages and remembers it in Rails::small_rail; null if none has room.
Rail* rail_for_small(Peer& peer, std::uint32_t full_ports);
// Returns whether the peer waits because other peers have filled the ports of its rails this turn,
// so that the next turn goes on. If nothing of the peer's is in flight, nothing else would make it
// ready.
bool waits_for_port(Peer& peer, bool small, std::uint32_t full_ports);
void note_sent(const Rail& rail, std::size_t packets, std::size_t bytes);

// --- of any

// Sets the outbox's packet sizes. Small messages are packed before their rail is known, so the
// shortest packet size of the usable rails applies to them.
void settle_sizes(Peer& peer);

}  // namespace pullman::engine
