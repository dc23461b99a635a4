// A packet that is longer than its path carries leaves in fragments, one at a time: what is in
// flight is a packet like any other, `Packet::rest` says how many bytes of it are behind that. The
// next fragment follows when the one before has arrived, so it takes no memory and no other packet.
// Cold: for packets that were built before the path was known to be narrow.
#pragma once

#include <cstddef>

#include "channel/packet.h"
#include "wire/frame.h"

namespace pullman::message {

// More room than a packet's bytes need: a MESSAGE that has to leave in fragments becomes CHUNKs,
// whose head is longer.
inline constexpr std::size_t kFragmentRoom = wire::kChunkBytes - wire::kMessageBytes;

// Leaves at most `limit` bytes (at least 576) of the packet, and the others to its rest. Packets of
// `limit` bytes or less stay as they are.
void fragment(channel::Packet& packet, std::size_t limit);

// The fragment has arrived: the rest, which there is, becomes the packet, all of it.
void advance_fragment(channel::Packet& packet);

}  // namespace pullman::message
