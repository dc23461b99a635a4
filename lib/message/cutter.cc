#include "message/cutter.h"

#include <algorithm>

#include "message/cutting.h"
#include "message/parcel.h"
#include "wire/frame.h"

namespace pullman::message {

using channel::Packet;
using detail::Operation;

namespace {

constexpr std::size_t kChunkHead = wire::kHeaderBytes + wire::kChunkBytes;
static_assert(kChunkHead == Packet::kSmallBytes);

wire::Frame head_of_next_chunk(const Operation& op) {
  return {.type = wire::FrameType::kChunk,
          .kind = op.special.wire_kind,
          .id = low32(op.message),
          .tag = op.tag,
          .total = op.size,
          .offset = op.sent,
          .data = {}};
}

// The run's chunks are cut like that, the first is given.
void write_heads(channel::Run& run, const wire::Frame& first, const wire::Cut& cut) {
  run.payload_bytes = cut.each;
  run.last_bytes = cut.last;
  run.overlap = cut.overlap;
  if (run.is_bulk) {
    run.used = wire::kBulkHeadBytes;
    return wire::put_bulks(run.bytes + wire::kBulkHeaderBytes, Packet::kSmallBytes, first, cut);
  }
  wire::put_chunks(run.bytes + wire::kHeaderBytes, Packet::kSmallBytes, first, cut);
}

}  // namespace

void Cutter::start(SendQueues& queues, Operation& op) {
  const bool whole = wire::class_of(op.special.wire_kind) == wire::Class::kAtomic;
  op.granted = whole ? op.size : std::min<std::uint64_t>(op.size, eager_bytes_);
  set_stage(op, SendStage::kEager);
  enqueue(queues.eager, op);
}

void Cutter::enqueue(Queue& queue, Operation& op) {
  if (op.special.goes_ahead) {
    queue.push_front(op);
  } else {
    queue.push_back(op);
  }
}

// wire.md 4.5
bool Cutter::grant(SendQueues& queues, Operation& op, std::uint64_t limit) {
  if (limit > op.size || limit < op.granted || op.granted == op.size) return false;
  if (stage_of(op) == SendStage::kEager) queues.eager.erase(queues.eager.iterator_to(op));
  op.granted = limit;
  set_stage(op, SendStage::kBulk);
  enqueue(queues.bulk, op);
  if (op.sent == op.granted) settle(queues.bulk, op);
  return true;
}

void Cutter::stop(SendQueues& queues, Operation& op) {
  if (stage_of(op) == SendStage::kEager) queues.eager.erase(queues.eager.iterator_to(op));
  if (stage_of(op) == SendStage::kBulk) queues.bulk.erase(queues.bulk.iterator_to(op));
  set_stage(op, SendStage::kSent);
}

// All granted bytes are in packets: either that was all, or a grant must come first.
void Cutter::settle(Queue& from, Operation& op) {
  const bool all = stage_of(op) == SendStage::kBulk || op.granted == op.size;
  from.erase(from.iterator_to(op));
  set_stage(op, all ? SendStage::kSent : SendStage::kAwaitingGrant);
}

std::uint64_t Cutter::bytes_to_cut(const SendQueues& queues) {
  constexpr std::size_t kLooked = 4;
  std::uint64_t bytes = 0;
  for (const Queue* queue : {&queues.eager, &queues.bulk}) {
    std::size_t looked = 0;
    for (auto op = queue->begin(); op != queue->end() && looked < kLooked; ++op, ++looked) {
      bytes += op->granted - op->sent;
    }
  }
  return bytes;
}

// Where the next bytes of a message lie that may be in several places: the packet's own memory, if
// they do not lie in one.
const std::byte* Cutter::place_payload(const Operation& op, Packet& packet, std::size_t length) {
  if (const auto place = one_place(op, op.sent); place.size() >= length) return place.data();
  copy_out(op, op.sent, {packet.end(), length});
  return packet.end();
}

// Room that the next chunk's packet needs: for its bytes, too, if they may have to be packed.
std::size_t Cutter::room_for_chunk(const Operation& op) const {
  if (!op.special.is_special || one_place(op, op.sent).size() >= op.granted - op.sent) {
    return kChunkHead;
  }
  return packets_.large_bytes();
}

Packet* Cutter::cut_chunk(SendQueues& queues, Heads heads) {
  Queue& from = next(queues);
  Operation& op = from.front();
  Packet* packet = packets_.take(room_for_chunk(op));
  if (packet == nullptr) return nullptr;
  packet->is_bulk = heads == Heads::kBulk && may_be_bulk(op);
  packet->used = packet->is_bulk ? wire::kBulkHeadBytes : kChunkHead;
  const auto length = static_cast<std::size_t>(
      std::min<std::uint64_t>(packet_bytes_ - packet->used, op.granted - op.sent));
  if (packet->is_bulk) {
    wire::put_bulk(packet->bytes + wire::kBulkHeaderBytes, head_of_next_chunk(op));
  } else {
    wire::put_chunk(packet->bytes + wire::kHeaderBytes, head_of_next_chunk(op), length);
  }
  packet->payload =
      op.special.is_special ? place_payload(op, *packet, length) : op.buffer + op.sent;
  packet->payload_bytes = static_cast<std::uint32_t>(length);
  packet->message = op.request;
  packet->peer = peer_index_;
  ++op.packets;
  op.sent += length;
  if (op.sent == op.granted) settle(from, op);
  return packet;
}

channel::Run* Cutter::cut_run(SendQueues& queues, const RunWish& wish) {
  Queue& from = next(queues);
  Operation& op = from.front();
  const bool several = op.granted - op.sent > packet_bytes_ - wire::kBulkHeadBytes;
  const bool bulk = wish.heads == Heads::kBulk && may_be_bulk(op) && several;
  const bool few = wish.heads == Heads::kRide && may_be_bulk(op);
  const std::size_t most = few ? kLeastRun : channel::Run::kMost;
  const std::size_t full = packet_bytes_ - (bulk ? wire::kBulkHeadBytes : kChunkHead);
  const std::byte* payload = nullptr;
  std::uint64_t bytes = op.granted - op.sent;
  if (op.special.is_special) {
    const auto place = one_place(op, op.sent);
    payload = place.data();
    if (place.size() < bytes) bytes = place.size() / full * full;  // no short chunk in the middle
  } else {
    payload = op.buffer + op.sent;
  }
  wire::Cut cut = cut_up(bytes, std::min(wish.most, most), full, wish.equal);
  if (cut.count < kLeastRun) return nullptr;
  channel::Run* run = packets_.take_run(cut.count);
  if (run == nullptr) return nullptr;
  const wire::Frame first = head_of_next_chunk(op);
  run->is_bulk = bulk;
  run->payload = payload;
  run->message = op.request;
  run->peer = peer_index_;
  op.packets += cut.count;
  op.sent += std::uint64_t{cut.each} * (cut.count - 1) + cut.last;
  if (op.sent == op.granted) settle(from, op);
  if (wish.equal && has_chunks(queues)) lengthen_last(cut);
  write_heads(*run, first, cut);
  return run;
}

}  // namespace pullman::message
