// Cuts the next bytes of a send into chunks: one packet, or a run of packets that are sent
// together. The payload stays in the caller's memory, unless it lies in several segments or comes
// from a packer.
//
// Does not know which send is next, nor when packets are sent. A send that is cut must have bytes
// left that may be cut.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/packet.h"
#include "channel/run.h"
#include "message/operation.h"
#include "message/tx/send_stage.h"
#include "wire/frame.h"

namespace pullman::message {

// The headers of packets that could be bulk packets (wire.md 2.11).
enum class ChunkHeads : std::uint8_t {
  kFull,       // with header and CHUNK
  kPiggyback,  // full, and as few packets as possible: an ACK is to be piggybacked
  kBulk,
};

inline constexpr std::size_t kChunkHeadBytes = wire::kHeaderBytes + wire::kChunkBytes;
// The least number of chunks in a run.
inline constexpr std::uint32_t kMinRun = 2;

// The peer has granted it, so it knows the tag and the total (wire.md 2.12).
inline bool may_be_bulk(const Operation& op) {
  return stage_of(op) == SendStage::kBulk;
}

// Returns null if the pool is empty.
channel::Packet* cut_chunk(Operation& op, ChunkHeads heads, std::size_t packet_bytes,
                           channel::PacketPool& packets);

struct RunShape {
  std::size_t max_chunks = 0;
  std::size_t packet_bytes = 0;
  bool equal_lengths = false;  // of the packets
  // More packets follow the run: its last one is made as long as the others, so that the burst need
  // not end there.
  bool others_follow = false;
  bool shares_burst = false;  // other runs are sent before it in the burst
  ChunkHeads heads = ChunkHeads::kFull;
};
// Returns null if fewer than kMinRun chunks can be cut, or the pool is empty.
channel::Run* cut_run(Operation& op, const RunShape& shape, channel::PacketPool& packets);

// Whether this many packets would hold only a part of it, and cut that to another length than the
// whole would be cut to.
bool would_split(const Operation& op, std::size_t packets, std::size_t packet_bytes);

}  // namespace pullman::message
