// What a HELLO said, until its sender has proved itself: what it holds, and gives back.
#pragma once

#include "channel/packet.h"
#include "engine/nics/resolver.h"
#include "engine/peer/peer.h"

namespace pullman::engine {

// It is answered where the home rail leads: it needs no destination of its own.
void answer_at_home(const Resolver& resolver, Peer& peer);
// Nothing, if the peer has none.
void forget_hello(const Resolver& resolver, channel::PacketPool& packets, Peer& peer);

}  // namespace pullman::engine
