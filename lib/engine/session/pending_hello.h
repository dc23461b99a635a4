// Gives back what a pending HELLO holds: its destination and its early data.
#pragma once

#include "channel/packet.h"
#include "engine/nics/resolver.h"
#include "engine/peer/peer.h"

namespace pullman::engine {

// Lets the answer leave by the home rail: its own destination, if it has one, is given back.
void aim_answer_at_home(const Resolver& resolver, Peer& peer);
// Forgets the peer's pending HELLO; does nothing if it has none.
void forget_hello(const Resolver& resolver, channel::PacketPool& packets, Peer& peer);

}  // namespace pullman::engine
