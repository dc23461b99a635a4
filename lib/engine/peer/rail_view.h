// What a program and an operator are told of a rail.
#pragma once

#include "base/time.h"
#include "engine/peer/peer.h"
#include "pullman/rails.h"

namespace pullman::engine {

// Describes a rail as it is now, with what the last check has found on it.
RailView rail_view(Instant now, const Rail& rail);
// Does the same without the names of NICs and the addresses, which take most of the time.
RailView rail_state(Instant now, const Rail& rail);
// Describes the memory that is shared with a peer, which must be active.
RailView memory_view(MemoryLink& memory);

}  // namespace pullman::engine
