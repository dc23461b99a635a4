// Outbox: long messages, cut into chunks.
#include <algorithm>

#include "base/check.h"
#include "message/tx/cut_plan.h"
#include "message/tx/fragments.h"
#include "message/tx/outbox.h"

namespace pullman::message {

using detail::Operation;

namespace {

constexpr std::size_t kChunkHead = wire::kHeaderBytes + wire::kChunkBytes;
static_assert(kChunkHead == Packet::kSmallBytes);
static_assert(wire::kBulkHeadBytes <= channel::Run::kBulkBytes);

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

// The run's chunks are cut like that, the first is given.
void write_heads(channel::Run& run, const wire::Frame& first, const wire::Cut& cut) {
  run.payload_bytes = cut.each;
  run.last_bytes = cut.last;
  run.overlap = cut.overlap;
  if (run.is_bulk) {
    run.used = wire::kBulkHeadBytes;
    return wire::put_bulks(run.bytes + wire::kBulkHeaderBytes, run.stride(), first, cut);
  }
  wire::put_chunks(run.bytes + wire::kHeaderBytes, run.stride(), first, cut);
}

}  // namespace

// Eager bytes cover the round trip until the grant. While what others were granted covers it, a
// message's first chunks do: the rest of it is granted when its turn comes, and has shorter heads.
Outbox::Queue& Outbox::next_to_cut() {
  Queue& eager = queues_->eager;
  if (queues_->bulk.empty()) return eager.empty() ? queues_->is_deprioritised : eager;
  while (!eager.empty() && eager.front().sent > 0 && may_yield(eager.front())) {
    set_stage(eager.front(), SendStage::kDeprioritised, &eager, &queues_->is_deprioritised);
  }
  return eager.empty() ? queues_->bulk : eager;
}

// Where the next bytes of a message lie that may be in several places: the packet's own memory, if
// they do not lie in one.
const std::byte* Outbox::place_payload(const Operation& op, Packet& packet, std::size_t length) {
  if (const auto place = one_place(op, op.sent); place.size() >= length) return place.data();
  copy_out(op, op.sent, {packet.end(), length});
  return packet.end();
}

// Room that the next chunk's packet needs: for its bytes, too, if they may have to be packed.
std::size_t Outbox::room_for_chunk(const Operation& op) const {
  if (!op.special.is_special || one_place(op, op.sent).size() >= op.granted - op.sent) {
    return kChunkHead;
  }
  return shared_.packets.large_bytes();
}

Packet* Outbox::cut_chunk(Queue& from, Heads heads) {
  Operation& op = from.front();
  Packet* packet = shared_.packets.take(room_for_chunk(op));
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
  if (op.sent == op.granted) settle_stage(op, &from);
  packet->wants_ack = asks(op, 1);
  return packet;
}

std::uint64_t Outbox::bytes_to_cut() const {
  constexpr std::size_t kLooked = 4;
  std::uint64_t bytes = 0;
  if (queues_ == nullptr) return bytes;
  for (const Queue* queue : {&queues_->eager, &queues_->bulk, &queues_->is_deprioritised}) {
    std::size_t looked = 0;
    for (auto op = queue->begin(); op != queue->end() && looked < kLooked; ++op, ++looked) {
      bytes += op->granted - op->sent;
    }
  }
  return bytes;
}

std::size_t Outbox::packets_left(Heads heads) const {
  constexpr std::size_t kFew = 4;
  if (queues_ == nullptr) return 0;
  if (anything_waits()) return kManyPackets;
  std::size_t packets = 0;
  std::size_t messages = 0;
  for (const Queue* queue : {&queues_->eager, &queues_->bulk, &queues_->is_deprioritised}) {
    for (const Operation& op : *queue) {
      if (++messages > kFew) return kManyPackets;
      const bool bulk = heads != Heads::kFull && may_be_bulk(op);
      const std::size_t full = packet_bytes_ - (bulk ? wire::kBulkHeadBytes : kChunkHead);
      packets += (op.granted - op.sent + full - 1) / full;
    }
  }
  return std::min(packets, kManyPackets);
}

bool Outbox::several_fill(std::size_t packets) const {
  if (queues_ == nullptr) return false;
  std::uint64_t bytes = 0;
  std::size_t messages = 0;
  for (const Queue* queue : {&queues_->eager, &queues_->bulk, &queues_->is_deprioritised}) {
    for (const Operation& op : *queue) {
      bytes += op.granted - op.sent;
      if (++messages > 1 && bytes > std::uint64_t{packets} * packet_bytes_) return true;
    }
  }
  return false;
}

channel::Run* Outbox::next_run(const RunWish& wish) {
  if (anything_waits()) admit_waiting();
  if (!ready_.empty() || !has_chunks()) return nullptr;
  return cut_run(next_to_cut(), wish);
}

bool Outbox::splits_next(std::size_t packets) {
  if (!has_chunks()) return false;
  const Operation& op = next_to_cut().front();
  const std::uint64_t bytes = op.granted - op.sent;
  const Wanted wanted{.most = packets,
                      .full = packet_bytes_ - kChunkHead,
                      .equal = true,
                      .waste = max_waste(op.granted)};
  return changes_length(cut_up(bytes, wanted), bytes, wanted);
}

channel::Run* Outbox::cut_run(Queue& from, const RunWish& wish) {
  Operation& op = from.front();
  const bool several = op.granted - op.sent > packet_bytes_ - wire::kBulkHeadBytes;
  const bool bulk = wish.heads == Heads::kBulk && may_be_bulk(op) && several;
  const bool yields = &from == &queues_->eager && !queues_->bulk.empty() && may_yield(op);
  const bool few = yields || (wish.heads == Heads::kRide && may_be_bulk(op));
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
  const Wanted wanted{.most = std::min(wish.most, most),
                      .full = full,
                      .equal = wish.equal,
                      .waste = max_waste(op.granted)};
  wire::Cut cut = cut_up(bytes, wanted);
  if (cut.count < kLeastRun) return nullptr;
  // It would end their burst, and what is left of it the next: it leaves whole with that one.
  if (wish.beside && changes_length(cut, bytes, wanted)) return nullptr;
  channel::Run* run = shared_.packets.take_run(cut.count);
  if (run == nullptr) return nullptr;
  const wire::Frame first = head_of_next_chunk(op);
  run->is_bulk = bulk;
  run->payload = payload;
  run->message = op.request;
  run->peer = peer_index_;
  op.packets += cut.count;
  op.sent += std::uint64_t{cut.each} * (cut.count - 1) + cut.last;
  if (op.sent == op.granted) settle_stage(op, &from);
  if (wish.equal && has_chunks()) lengthen_last(cut, wanted.waste);
  run->wants_ack = asks(op, cut.count);
  write_heads(*run, first, cut);
  return run;
}

// Whether the packet that was cut last, of so many, asks for its ACK: somebody waits for it, or for
// one before it, and nothing is left to cut that would; or a message ends there, and none has asked
// for long. Where packets run out nothing more can be cut until an ACK gives some back.
bool Outbox::asks(const Operation& op, std::uint32_t cut) {
  const bool ends = stage(op) == SendStage::kSent;
  if (ends && !op.special.is_own_copy && !op.special.is_solicited) owes_ask_ = 1;
  const bool has_pending_tx = owes_ask_ != 0 && !has_chunks();
  const bool is_time = count_unasked(cut);
  const bool is_short = unasked_ >= kAskedPerIfShort && shared_.packets.is_short();
  if (!has_pending_tx && !(ends && is_time) && !is_short) return false;
  note_asked();
  return true;
}

// All granted bytes are in packets: either that was all, or a grant must come first.
void Outbox::settle_stage(Operation& op, Queue* from) {
  const bool was_granted = stage(op) == SendStage::kBulk ||
                           stage(op) == SendStage::kAwaitingGrant || op.special.is_announced;
  if (was_granted || op.granted == op.size) {
    set_stage(op, SendStage::kSent, from, nullptr);
  } else {
    set_stage(op, SendStage::kAwaitingGrant, from, &queues_->awaiting_grant);
  }
}

void Outbox::set_stage(Operation& op, SendStage to_stage, Queue* from, Queue* to) {
  if (from != nullptr) from->erase(from->iterator_to(op));
  op.stage = static_cast<std::uint32_t>(to_stage);
  if (to != nullptr) to->push_back(op);
}

// Where it stands while not all of it is in packets.
Outbox::Queue* Outbox::queue_of(const Operation& op) {
  switch (stage(op)) {
    case SendStage::kEager:
      return &queues_->eager;
    case SendStage::kDeprioritised:
      return &queues_->is_deprioritised;
    case SendStage::kAwaitingGrant:
      return &queues_->awaiting_grant;
    case SendStage::kBulk:
      return &queues_->bulk;
    default:
      return nullptr;
  }
}

}  // namespace pullman::message
