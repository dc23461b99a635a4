// A packet that is longer than its path carries leaves piece by piece: what is in flight is a
// packet like any other, `Packet::rest` says how many bytes of it are behind that. The next piece
// follows when the one before has arrived, so it takes no memory and no other packet. Cold: for
// packets that were built before the path was known to be narrow.
#pragma once

#include <cstddef>

#include "channel/packet.h"
#include "wire/frame.h"

namespace pullman::message {

// More room than a packet's bytes need: a MESSAGE that has to leave in pieces becomes CHUNKs, whose
// head is longer.
inline constexpr std::size_t kPieceRoom = wire::kChunkBytes - wire::kMessageBytes;

// Leaves at most `limit` bytes (at least 576) of the packet, and the others to its rest. Packets of
// `limit` bytes or less stay as they are.
void shorten(channel::Packet& packet, std::size_t limit);

// A piece has arrived: goes on to the rest, which becomes the packet, all of it. There is a rest.
void go_on(channel::Packet& packet);

}  // namespace pullman::message
