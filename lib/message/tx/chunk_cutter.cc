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

// Returns what lies in one place of the bytes that may be cut next.
std::span<const std::byte> next_in_place(const Operation& op) {
  if (op.special.is_special) return one_place(op, op.sent);
  return {op.buffer + op.sent, static_cast<std::size_t>(op.granted - op.sent)};
}

}  // namespace

// Bytes that lie in several places are copied into the packet's own memory.
Packet* cut_chunk(Operation& op, ChunkHeads heads, std::size_t packet_bytes, PacketPool& packets) {
  const std::uint64_t left = op.granted - op.sent;
  const std::span<const std::byte> place = next_in_place(op);
  Packet* packet = packets.take(place.size() >= left ? kChunkHeadBytes : packets.large_bytes());
  if (packet == nullptr) return nullptr;
  packet->is_bulk = heads == ChunkHeads::kBulk && may_be_bulk(op);
  packet->used = packet->is_bulk ? wire::kBulkHeadBytes : kChunkHeadBytes;
  auto length =
      static_cast<std::size_t>(std::min<std::uint64_t>(packet_bytes - packet->used, left));
  // A way that takes longer chunks than a packet has room for gets them as they lie.
  if (place.size() < length) {
    const std::size_t room = packet->capacity - packet->used;
    length = place.size() > room ? place.size() : std::min(length, room);
  }
  const bool copies = place.size() < length;
  if (packet->is_bulk) {
    wire::put_bulk(packet->bytes + wire::kBulkHeaderBytes, head_of_next_chunk(op));
  } else {
    wire::put_chunk(packet->bytes + wire::kHeaderBytes, head_of_next_chunk(op), length);
  }
  if (copies) copy_out(op, op.sent, {packet->end(), length});
  packet->payload = copies ? packet->end() : place.data();
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
