#include "message/tx/chunk_cutter.h"

#include <algorithm>

#include "message/send_descriptor.h"
#include "message/tx/cut_plan.h"

namespace pullman::message {

using channel::Packet;
using channel::PacketPool;
using channel::Run;

namespace {

static_assert(kChunkHeadBytes == Packet::kSmallBytes);
static_assert(wire::kBulkHeadBytes <= Run::kBulkBytes);

wire::Frame head_of_next_chunk(const Operation& op) {
  return {.type = wire::FrameType::kChunk,
          .kind = op.special.wire_kind,
          .id = low32(op.message),
          .tag = op.tag,
          .total = op.size,
          .offset = op.sent,
          .limit = 0,
          .data = {}};
}

// Writes the heads of the run's chunks, which `cut` describes, after the first.
void write_heads(Run& run, const wire::Frame& first, const wire::Cut& cut) {
  run.payload_bytes = cut.each;
  run.last_bytes = cut.last;
  run.overlap = cut.overlap;
  if (run.is_bulk) {
    run.used = wire::kBulkHeadBytes;
    return wire::put_bulks(run.bytes + wire::kBulkHeaderBytes, run.stride(), first, cut);
  }
  wire::put_chunks(run.bytes + wire::kHeaderBytes, run.stride(), first, cut);
}

// Returns where the next bytes of a message with segments or a packer are: in place if they are
// contiguous, else copied into the packet's own memory.
const std::byte* place_payload(const Operation& op, Packet& packet, std::size_t length) {
  if (const auto place = one_place(op, op.sent); place.size() >= length) return place.data();
  copy_out(op, op.sent, {packet.end(), length});
  return packet.end();
}

// Returns the room that the next chunk's packet needs, including its bytes if they may have to be
// copied.
std::size_t room_for_chunk(const Operation& op, const PacketPool& packets) {
  if (!op.special.is_special || one_place(op, op.sent).size() >= op.granted - op.sent) {
    return kChunkHeadBytes;
  }
  return packets.large_bytes();
}

}  // namespace

Packet* cut_chunk(Operation& op, ChunkHeads heads, std::size_t packet_bytes, PacketPool& packets) {
  Packet* packet = packets.take(room_for_chunk(op, packets));
  if (packet == nullptr) return nullptr;
  packet->is_bulk = heads == ChunkHeads::kBulk && may_be_bulk(op);
  packet->used = packet->is_bulk ? wire::kBulkHeadBytes : kChunkHeadBytes;
  auto length = static_cast<std::size_t>(
      std::min<std::uint64_t>(packet_bytes - packet->used, op.granted - op.sent));
  if (op.special.is_special && one_place(op, op.sent).size() < length) {
    length = std::min<std::size_t>(length, packet->capacity - packet->used);
  }
  if (packet->is_bulk) {
    wire::put_bulk(packet->bytes + wire::kBulkHeaderBytes, head_of_next_chunk(op));
  } else {
    wire::put_chunk(packet->bytes + wire::kHeaderBytes, head_of_next_chunk(op), length);
  }
  packet->payload =
      op.special.is_special ? place_payload(op, *packet, length) : op.buffer + op.sent;
  packet->payload_bytes = static_cast<std::uint32_t>(length);
  packet->message = op.request;
  ++op.packets;
  op.sent += length;
  return packet;
}

Run* cut_run(Operation& op, const RunShape& shape, PacketPool& packets) {
  std::uint64_t bytes = op.granted - op.sent;
  const bool several = bytes > shape.packet_bytes - wire::kBulkHeadBytes;
  const bool bulk = shape.heads == ChunkHeads::kBulk && may_be_bulk(op) && several;
  const std::size_t full = shape.packet_bytes - (bulk ? wire::kBulkHeadBytes : kChunkHeadBytes);
  const std::byte* payload = nullptr;
  if (op.special.is_special) {
    const auto place = one_place(op, op.sent);
    payload = place.data();
    if (place.size() < bytes) bytes = place.size() / full * full;  // no short chunk in the middle
  } else {
    payload = op.buffer + op.sent;
  }
  const CutLimits limits{.max_chunks = shape.max_chunks,
                         .full = full,
                         .equal = shape.equal_lengths,
                         .max_waste = max_waste(op.granted)};
  wire::Cut cut = plan_cut(bytes, limits);
  if (cut.count < kMinRun) return nullptr;
  // A shorter chunk would end this burst, and the message's remaining one the next burst; so the
  // message is left for the next burst as a whole.
  if (shape.shares_burst && changes_length(cut, bytes, limits)) return nullptr;
  Run* run = packets.take_run(cut.count);
  if (run == nullptr) return nullptr;
  const wire::Frame first = head_of_next_chunk(op);
  run->is_bulk = bulk;
  run->payload = payload;
  run->message = op.request;
  op.packets += cut.count;
  op.sent += std::uint64_t{cut.each} * (cut.count - 1) + cut.last;
  const bool more_follows = shape.others_follow || op.sent < op.granted;
  if (shape.equal_lengths && more_follows) lengthen_last(cut, limits.max_waste);
  write_heads(*run, first, cut);
  return run;
}

bool would_split(const Operation& op, std::size_t packets, std::size_t packet_bytes) {
  const std::uint64_t bytes = op.granted - op.sent;
  const CutLimits limits{.max_chunks = packets,
                         .full = packet_bytes - kChunkHeadBytes,
                         .equal = true,
                         .max_waste = max_waste(op.granted)};
  return changes_length(plan_cut(bytes, limits), bytes, limits);
}

}  // namespace pullman::message
