// A packet that is longer than its path carries is sent in fragments, one at a time. The fragment
// in flight is a packet like any other; `Packet::rest` tells how many bytes follow it. The next
// fragment is sent when the one before has arrived, so fragments take no memory and no other
// packet. Cold: only packets that were built before the path was known to be narrow need it.
#pragma once

#include <cstddef>

#include "channel/packet.h"
#include "wire/frame.h"

namespace pullman::message {

// Spare room that such a packet needs: a MESSAGE that is sent in fragments becomes CHUNKs, whose
// head is longer.
inline constexpr std::size_t kFragmentRoom = wire::kChunkBytes - wire::kMessageBytes;

// Leaves at most `limit` bytes (at least 576) in the packet and makes the others its rest. Packets
// of `limit` bytes or less stay as they are.
void fragment(channel::Packet& packet, std::size_t limit);

// The fragment has arrived: makes the whole rest the packet. There must be a rest.
void advance_fragment(channel::Packet& packet);

}  // namespace pullman::message
