#include "message/tx/outbox.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/short_copy.h"
#include "message/tx/fragments.h"

namespace pullman::message {

using detail::Operation;

Outbox::Outbox(const OutboxResources& shared, std::uint32_t peer_index, MessageId first,
               std::size_t first_packet_bytes)
    : shared_(shared),
      next_id_(first),
      packet_bytes_(static_cast<std::uint16_t>(first_packet_bytes)),
      small_bytes_(packet_bytes_),
      peer_index_(peer_index) {
  PULLMAN_CHECK(peer_index_ == peer_index);
  ids_.start(first);
}

Outbox::~Outbox() {
  fail(Status::kClosed);
}

void Outbox::handle_hello(std::size_t packet_bytes, std::uint64_t allowance,
                          std::uint32_t eager_bytes) {
  introduced_ = 1;
  packet_bytes_ = small_bytes_ = static_cast<std::uint16_t>(packet_bytes);
  allowance_.raise(allowance, allowance);
  kept_ = kept_for_envelopes(allowance);
  eager_bytes_ = eager_bytes;
}

// A small message fits one packet whole and needs no grant.
bool Outbox::is_small(std::size_t size) const {
  return size <= eager_bytes_ && size + wire::kMessageBytes + wire::kHeaderBytes <= small_bytes_;
}

bool Outbox::can_admit(std::uint64_t size) const {
  if (!introduced_ && !is_small(size)) [[unlikely]]
    return false;
  return has_id() && (affords(charge_of(size, eager_bytes_)) || affords_unheld(0, size));
}

MessageId Outbox::admit(std::uint64_t size) {
  allowance_.spend(charge_of(size, eager_bytes_));
  return next_id_++;
}

bool Outbox::send_copy(PeerId peer, const Small& message, Request& request) noexcept {
  const std::size_t total = message.total();
  if (has_waiting() || !can_admit(total)) return false;
  if (is_small(total)) [[likely]] {
    if (!copy_small(message)) return false;
  } else if (!is_copied(total) || !copy_parts(message)) {
    return false;
  }
  request.finish_copied(peer, message.tag, message.bytes.size());
  return true;
}

bool Outbox::send(PeerId peer, Tag tag, std::span<const std::byte> bytes,
                  Request& request) noexcept {
  if (send_copy(peer, {.tag = tag, .bytes = bytes}, request)) return true;
  Operation& op = request.operation();
  request.begin(Operation::Kind::kSend, peer, tag);
  op.buffer = const_cast<std::byte*>(bytes.data());
  op.size = bytes.size();
  const bool waits =
      has_waiting() || !can_admit(op.size) || is_small(op.size) || is_copied(op.size);
  begin(op);
  if (!waits) {
    start_long(op);
    return false;
  }
  op.stage = static_cast<std::uint32_t>(SendStage::kWaiting);
  ++shared_.counters.held_back;
  queues_->waiting.push_back(op);
  return false;
}

// The pool has one for every peer.
void Outbox::begin(Operation& op) {
  if (queues_ == nullptr) queues_ = shared_.queues.take();
  PULLMAN_CHECK(queues_ != nullptr);
  queues_->unfinished.push_back(op);
}

void Outbox::end(Operation& op) {
  if (op.by_id.is_linked()) queues_->by_id.erase(queues_->by_id.iterator_to(op));
  queues_->unfinished.erase(queues_->unfinished.iterator_to(op));
}

void Outbox::give_back_queues() {
  if (queues_ == nullptr || !queues_->unfinished.empty() || queues_->parts != nullptr) return;
  queues_->said_blocked_at = 0;
  shared_.queues.give_back(queues_);
  queues_ = nullptr;
}

// Room behind the last waiting packet, or in a new one; null if neither is to be had.
std::byte* Outbox::room_for(std::size_t bytes) {
  if (!ready_.empty()) {
    Packet& last = ready_.back();
    if (last.used + bytes <= std::min<std::size_t>(last.capacity, small_bytes_)) return last.end();
  }
  if (ready_.size() >= kMaxReady) return nullptr;
  // A lone small message takes a large packet, too: company may come.
  Packet* packet = shared_.packets.take(shared_.packets.large_bytes());
  if (packet == nullptr) return nullptr;
  packet->peer = peer_index_;
  ready_.push_back(*packet);
  return packet->end();
}

// Anything but a plain message: its request is done, or is told later.
Status Outbox::send(PeerId peer, const SendDescriptor& descriptor, Request& request) noexcept {
  const std::uint64_t total = descriptor.total();
  const bool small = is_small(total);
  const bool may = (descriptor.is_solicited || !has_waiting()) &&
                   can_admit(total, charge_for(descriptor.kind, total),
                             descriptor.is_solicited || affords_unheld(descriptor.kind, total));
  if (descriptor.only_copy && !(may && small && room_for(wire::kMessageBytes + total) != nullptr)) {
    return Status::kBusy;
  }
  Operation& op = request.operation();
  request.begin(Operation::Kind::kSend, peer, descriptor.tag);
  describe(op, descriptor);
  const bool copied = may && small && copy_small(op);
  if (copied && !descriptor.wants_result && !descriptor.wants_arrival) {
    request.finish(Status::kOk, descriptor.size);
    return Status::kOk;
  }
  begin(op);
  if (copied) return settle_copied(op);
  if (may && !small) {
    start_long(op);
    return Status::kPending;
  }
  op.stage = static_cast<std::uint32_t>(SendStage::kWaiting);
  ++shared_.counters.held_back;
  (descriptor.is_solicited ? queues_->solicited : queues_->waiting).push_back(op);
  return Status::kPending;
}

std::uint64_t Outbox::charge_for(std::uint8_t kind, std::uint64_t total) const {
  return kind == 0 ? charge_of(total, eager_bytes_) : charge_of(kind, total, eager_bytes_);
}

bool Outbox::can_admit(std::uint64_t total, std::uint64_t charge, bool affordable) const {
  if (!introduced_ && !is_small(total)) return false;
  return has_id() && (affordable || affords(charge));
}

bool Outbox::can_admit(const Operation& op) const {
  const std::uint8_t kind = op.special.wire_kind;
  const std::uint64_t charge = charge_for(kind, op.size);
  return can_admit(op.size, charge, op.special.is_solicited || affords_unheld(kind, op.size));
}

void Outbox::admit(Operation& op) {
  allowance_.spend(charge_for(op.special.wire_kind, op.size));
  give_id(op);
}

void Outbox::give_id(Operation& op) {
  op.message = next_id_++;
  if (op.asker != nullptr && op.special.is_special) op.asker->message = op.message;
}

bool Outbox::copy_small(Operation& op) {
  const std::size_t size = wire::kMessageBytes + op.size;
  std::byte* out = room_for(size);
  if (out == nullptr) return false;
  admit(op);
  wire::put_message(out,
                    {.type = wire::FrameType::kMessage,
                     .kind = op.special.wire_kind,
                     .id = low32(op.message),
                     .tag = op.tag,
                     .data = {}},
                    op.size);
  copy_out(op, 0, {out + wire::kMessageBytes, op.size});
  Packet& packet = ready_.back();
  packet.wants_ack = packet.wants_ack || op.special.wants_arrival;
  count_message(packet, op.message);
  packet.used += static_cast<std::uint32_t>(size);
  return true;
}

// It is in a packet. Who does not ask for more is done.
Status Outbox::settle_copied(Operation& op) {
  if (op.special.wants_result || op.special.wants_arrival) note_id(op);
  if (op.special.wants_result) {
    op.stage = static_cast<std::uint32_t>(SendStage::kAwaitingResult);
    return Status::kPending;
  }
  if (op.special.wants_arrival) {
    op.stage = static_cast<std::uint32_t>(SendStage::kArriving);
    queues_->arriving.push_back(op);
    return Status::kPending;
  }
  finish(op, Status::kOk);
  give_back_queues();
  return Status::kOk;
}

inline void Outbox::write_small(Packet& packet, const Small& message, MessageId id) {
  const std::size_t total = message.total();
  std::byte* out = packet.end();
  wire::put_message(out,
                    {.type = wire::FrameType::kMessage,
                     .kind = message.kind,
                     .id = low32(id),
                     .tag = message.tag,
                     .data = {}},
                    total);
  out += wire::kMessageBytes;
  if (wire::has_immediate(message.kind)) out += wire::put_immediate(out, message.immediate);
  copy_short(out, message.bytes.data(), message.bytes.size());
  count_message(packet, id);
  packet.used += static_cast<std::uint32_t>(wire::kMessageBytes + total);
}

bool Outbox::copy_small(const Small& message) {
  const std::size_t total = message.total();
  if (room_for(wire::kMessageBytes + total) == nullptr) return false;
  write_small(ready_.back(), message, admit(total));
  return true;
}

// What send_copy() does with it, without what has been asked for those before.
bool Outbox::append(Tag tag, std::span<const std::byte> bytes) noexcept {
  if (ready_.empty() || has_waiting() || bytes.size() > eager_bytes_) return false;
  Packet& last = ready_.back();
  const std::size_t end = last.used + wire::kMessageBytes + bytes.size();
  if (end > std::min<std::size_t>(last.capacity, small_bytes_)) return false;
  if (!has_id() || !affords(charge_of(bytes.size(), eager_bytes_))) return false;
  write_small(last, {.tag = tag, .bytes = bytes}, admit(bytes.size()));
  return true;
}

// Long messages have ids, too: those of small ones that share a packet need not be consecutive.
void Outbox::count_message(Packet& packet, MessageId id) {
  if (packet.used == wire::kHeaderBytes) [[likely]] {
    packet.first_message = id;
    packet.messages = 1;
  } else if (packet.messages != Packet::kUncounted) {
    packet.messages =
        id == packet.first_message + packet.messages ? packet.messages + 1 : Packet::kUncounted;
  }
}

void Outbox::start_long(Operation& op) {
  admit(op);
  note_id(op);
  const bool whole = wire::class_of(op.special.wire_kind) == wire::Class::kAtomic;
  op.granted = whole ? op.size : std::min<std::uint64_t>(op.size, eager_bytes_);
  op.stage = static_cast<std::uint32_t>(SendStage::kEager);
  enqueue(queues_->eager, op);
}

void Outbox::enqueue(Queue& queue, Operation& op) {
  if (op.special.has_priority) {
    queue.push_front(op);
  } else {
    queue.push_back(op);
  }
}

// In the order of send(): the first that cannot be admitted holds back all behind it. What the peer
// asked for is held back by no other: it waits for that, and may have to before it takes more.
void Outbox::admit_waiting() {
  // With the last that was unfinished the queues have gone back.
  if (admit_waiting(queues_->solicited) && queues_ != nullptr) admit_waiting(queues_->waiting);
  give_back_queues();
}

// False: there is no packet.
bool Outbox::admit_waiting(Queue& waiting) {
  while (!waiting.empty() && can_admit(waiting.front())) {
    Operation& op = waiting.front();
    const bool parts = is_copied(op);
    if (!parts && !is_small(op.size)) {
      waiting.pop_front();
      start_long(op);
      continue;
    }
    if (!(parts ? copy_parts(op) : copy_small(op))) return false;
    waiting.pop_front();
    settle_copied(op);
  }
  return true;
}

Packet* Outbox::next_packet(Heads heads) {
  if (anything_waits()) [[unlikely]]
    admit_waiting();
  const bool chunks = has_chunks();
  if (!ready_.empty() && !(chunks && chunk_turn_)) {
    chunk_turn_ = 1;
    Packet& packet = ready_.front();
    ready_.pop_front();
    if (packet.used > packet_bytes_) [[unlikely]]
      fragment(packet, packet_bytes_);
    packet.wants_ack = packet.wants_ack || count_unasked(1);
    if (packet.wants_ack) [[unlikely]]
      unasked_ = 0;  // it may take another rail than the long message to which an ACK is owed
    return &packet;
  }
  chunk_turn_ = 0;
  if (!chunks) return nullptr;
  return cut_chunk(next_to_cut(), heads);
}

// The send of that id, if it is not finished.
Operation* Outbox::find(MessageId id) {
  if (queues_ == nullptr) return nullptr;
  const auto found = queues_->by_id.find(id);
  return found == queues_->by_id.end() ? nullptr : &*found;
}

bool Outbox::is_ungranted(const Operation& op) {
  return stage(op) == SendStage::kAwaitingGrant || stage(op) == SendStage::kDeprioritised ||
         stage(op) == SendStage::kEager;
}

// wire.md 4.5
bool Outbox::handle_grant(std::uint32_t id_low, std::uint64_t limit) {
  const MessageId id = expand(id_low, next_id_);
  if (id >= next_id_) return false;
  Operation* op = find(id);
  if (op == nullptr || !is_ungranted(*op)) return true;  // it had its grant before
  const bool is_short = op->size <= eager_bytes_;
  if (limit > op->size || limit < op->granted || (is_short && !op->special.is_announced)) {
    return false;
  }
  op->granted = limit;
  if (is_short && op->sent < limit) {
    send_announced(*op);
    return true;
  }
  set_stage(*op, SendStage::kBulk, queue_of(*op), nullptr);
  enqueue(queues_->bulk, *op);
  if (op->sent == op->granted) {
    settle_stage(*op, &queues_->bulk);
    finish_if_acked(*op);
  }
  return true;
}

Packet* Outbox::control_packet(std::size_t bytes) {
  Packet* packet = shared_.packets.take(wire::kHeaderBytes + bytes);
  if (packet != nullptr) packet->peer = peer_index_;
  return packet;
}

std::optional<MessageId> Outbox::id_of(std::uint32_t id_low) const {
  const MessageId id = expand(id_low, next_id_);
  return id < next_id_ ? std::optional(id) : std::nullopt;
}

// wire.md 10.2. What is not sent yet is not wanted.
Outbox::Found Outbox::handle_result(MessageId id, Status status) {
  Operation* found = find(id);
  if (found == nullptr || found->special.has_result) return Found::kNone;
  Operation& op = *found;
  if (!op.special.wants_result) return Found::kRefused;
  op.special.has_result = true;
  op.result = status;
  if (stage(op) == SendStage::kAwaitingResult) {
    finish(op, status);
    give_back_queues();
    return Found::kYes;
  }
  if (Queue* queue = queue_of(op)) set_stage(op, SendStage::kSent, queue, nullptr);
  finish_if_acked(op);
  return Found::kYes;
}

void Outbox::handle_acked(Packet& packet) {
  if (packet.message != nullptr) {
    Operation& op = packet.message->operation();
    PULLMAN_DCHECK(op.packets >= packet.chunks);
    op.packets -= packet.chunks;
    finish_if_acked(op);
    return;
  }
  finish_messages(packet);
  if (queues_ != nullptr) finish_arrived();
}

// Those that were copied, and are to be told when they have arrived.
void Outbox::finish_arrived() {
  for (auto at = queues_->arriving.begin(); at != queues_->arriving.end();) {
    Operation& op = *at;
    ++at;
    if (!ids_.finished(op.message)) continue;
    queues_->arriving.erase(queues_->arriving.iterator_to(op));
    finish(op, Status::kOk);
  }
  give_back_queues();
}

void Outbox::finish(Operation& op, Status status) {
  end(op);
  op.request->finish(status, status == Status::kOk ? op.size - op.special.lead_bytes : 0);
}

void Outbox::handle_fragment_acked(Packet& packet) {
  if (packet.message == nullptr) finish_messages(packet);
  advance_fragment(packet);
}

// Those of which nothing was under way but what the packet carried.
void Outbox::finish_messages(const Packet& packet) {
  if (packet.messages != Packet::kUncounted) [[likely]]
    return ids_.finish_several(packet.first_message, packet.messages, shared_.bitmaps);
  if (packet.payload != nullptr) {  // a frame that left in pieces
    const wire::Frame head = wire::chunk_head(packet.body().data());
    if (head.offset + packet.payload_bytes == packet.fragment_end) note_arrived(head.id);
    return;
  }
  wire::FrameReader reader(packet.body());
  wire::Frame frame;
  while (reader.next(frame)) {
    if (frame.type == wire::FrameType::kMessage || frame.type == wire::FrameType::kChunk ||
        frame.type == wire::FrameType::kEnvelope)
      note_arrived(frame.id);
  }
}

// The receiver has made its note of that message (wire.md 4.3).
void Outbox::note_begun(MessageId id) {
  if (!ids_.finished(id)) ids_.finish(id, shared_.bitmaps);
}

void Outbox::finish_if_acked(Operation& op) {
  if (op.packets > 0) return;
  if (stage(op) == SendStage::kAwaitingGrant) return note_begun(op.message);
  if (stage(op) != SendStage::kSent) return;
  note_begun(op.message);
  if (op.special.wants_result) {
    if (!op.special.has_result) return set_stage(op, SendStage::kAwaitingResult, nullptr, nullptr);
    finish(op, op.result);
  } else {
    finish(op, Status::kOk);
  }
  give_back_queues();
}

void Outbox::handle_bye(const wire::Frame& bye) {
  if (queues_ == nullptr) return;
  const Delivered delivered(bye, next_id_);
  for (auto at = queues_->unfinished.begin(); at != queues_->unfinished.end();) {
    Operation& op = *at;
    ++at;
    if (stage(op) == SendStage::kWaiting || !delivered.contains(op.message)) continue;
    if (op.special.wants_result && !op.special.has_result) continue;
    if (op.queue.is_linked())
      (stage(op) == SendStage::kArriving ? queues_->arriving : *queue_of(op))
          .erase(Queue::s_iterator_to(op));
    finish(op, op.special.wants_result ? op.result : Status::kOk);
  }
  give_back_queues();
}

void Outbox::abandon(Packet& packet) {
  if (packet.message != nullptr) packet.message->operation().packets -= packet.chunks;
  shared_.packets.give_back(packet);
}

void Outbox::fail(Status status) {
  while (!ready_.empty()) {
    Packet& packet = ready_.front();
    ready_.pop_front();
    shared_.packets.give_back(packet);
  }
  if (queues_ == nullptr) return;
  queues_->waiting.clear();
  queues_->solicited.clear();
  queues_->arriving.clear();
  queues_->eager.clear();
  queues_->is_deprioritised.clear();
  queues_->awaiting_grant.clear();
  queues_->bulk.clear();
  if (queues_->parts != nullptr) {
    queues_->parts->clear();
    give_back_parts();
  }
  queues_->by_id.clear();
  while (!queues_->unfinished.empty()) {
    Operation& op = queues_->unfinished.front();
    queues_->unfinished.pop_front();
    PULLMAN_CHECK(op.packets == 0);
    op.request->finish(status, 0);
  }
  give_back_queues();
}

}  // namespace pullman::message
