// Cuts the next bytes of a send into chunks: one packet, or a run of them that leave together. The
// payload stays where the caller has it, unless it lies in several places or is packed.
//
// Does not know which send is next, nor when packets leave. A send that is cut has bytes left that
// may be cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/packet.h"
#include "channel/run.h"
#include "message/operation.h"
#include "message/tx/send_stage.h"
#include "wire/frame.h"

namespace pullman::message {

// How packets begin that may be bulk packets (wire.md 2.11).
enum class ChunkHeads : std::uint8_t {
  kFull,       // with header and CHUNK
  kPiggyback,  // the same, and no more of them than there have to be: an ACK is to ride along
  kBulk,
};

inline constexpr std::size_t kChunkHeadBytes = wire::kHeaderBytes + wire::kChunkBytes;
// A run has so many chunks at least.
inline constexpr std::uint32_t kMinRun = 2;

// The peer granted it, so it knows the tag and the total (wire.md 2.12).
inline bool may_be_bulk(const Operation& op) {
  return stage_of(op) == SendStage::kBulk;
}

// Null: there is no packet.
channel::Packet* cut_chunk(Operation& op, ChunkHeads heads, std::size_t packet_bytes,
                           channel::PacketPool& packets);

struct RunShape {
  std::size_t max_chunks = 0;
  std::size_t packet_bytes = 0;
  bool equal_lengths = false;  // of its packets
  // More is to follow the last one, which then is as long as the others, so that a burst need not
  // end there.
  bool others_follow = false;
  bool shares_burst = false;  // other runs leave in front of it
  ChunkHeads heads = ChunkHeads::kFull;
};
// Null: no kMinRun chunks are to be had, or there are no packets.
channel::Run* cut_run(Operation& op, const RunShape& shape, channel::PacketPool& packets);

// So many packets would hold a part of it, cut to another length than all of it would be.
bool would_split(const Operation& op, std::size_t packets, std::size_t packet_bytes);

}  // namespace pullman::message
