#include "message/outbox.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "message/pieces.h"

namespace pullman::message {

using detail::Operation;

Outbox::Outbox(const OutboxResources& shared, std::uint32_t peer_index, MessageId first,
               std::size_t first_packet_bytes)
    : shared_(shared),
      begun_(shared.bitmaps),
      next_id_(first),
      cutter_(shared.packets, peer_index, first_packet_bytes),
      small_bytes_(static_cast<std::uint32_t>(first_packet_bytes)),
      peer_index_(peer_index) {
  begun_.start(first);
}

Outbox::~Outbox() {
  fail(Status::kClosed);
}

void Outbox::handle_hello(const Limits& limits) {
  introduced_ = true;
  cutter_.set_packet_bytes(limits.packet_bytes);
  cutter_.set_eager_bytes(limits.eager_bytes);
  small_bytes_ = static_cast<std::uint32_t>(limits.packet_bytes);
  allowance_.raise(limits.allowance);
  envelopes_.raise(limits.envelopes);
}

// A small message fits one packet whole and needs no grant.
bool Outbox::is_small(std::size_t size) const {
  return size <= cutter_.eager_bytes() &&
         size + wire::kMessageBytes + wire::kHeaderBytes <= small_bytes_;
}

std::uint64_t Outbox::charge_for(std::uint8_t kind, std::uint64_t total) const {
  return kind == 0 ? charge_of(total, cutter_.eager_bytes())
                   : charge_of(kind, total, cutter_.eager_bytes());
}

bool Outbox::can_admit(std::uint64_t size) const {
  return may_begin(size) && allowance_.affords(charge_of(size, cutter_.eager_bytes()));
}

bool Outbox::can_admit(const Operation& op) const {
  return may_begin(op.size) &&
         (op.special.is_solicited || allowance_.affords(charge_for(op.special.wire_kind, op.size)));
}

// For want of allowance; but not before the receiver has had all that was sent and returned
// nothing: one that takes messages as they come returns allowance as they come (wire.md 4.12).
bool Outbox::can_announce(const Operation& op) const {
  return introduced_ && !op.special.is_solicited && (announces_ || all_begun()) &&
         begun_.contains(next_id_) &&
         envelopes_.affords(charge_of(op.special.wire_kind, op.size, 0));
}

bool Outbox::send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) {
  Operation& op = request.operation();
  request.begin(Operation::Kind::kSend, peer, tag);
  const bool may = !has_waiting() && can_admit(bytes.size());
  if (may && is_small(bytes.size()) && copy_small(tag, bytes)) {
    request.finish(Status::kOk, bytes.size());
    return true;
  }
  op.buffer = const_cast<std::byte*>(bytes.data());
  op.size = bytes.size();
  if (may && !is_small(bytes.size())) {
    start_long(op);
  } else {
    hold_back(op);
  }
  return false;
}

// The pool has one for every peer.
void Outbox::need_queues() {
  if (queues_ == nullptr) queues_ = shared_.queues.take();
  PULLMAN_CHECK(queues_ != nullptr);
}

// An operation with the highest id so far is unfinished.
void Outbox::keep(Operation& op) {
  need_queues();
  queues_->unfinished.push_back(op);
}

void Outbox::hold_back(Operation& op) {
  need_queues();
  set_stage(op, SendStage::kWaiting);
  ++held_back_;
  (op.special.is_solicited ? queues_->solicited : queues_->waiting).push_back(op);
}

void Outbox::give_back_queues() {
  if (queues_ == nullptr || !queues_->empty()) return;
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
Status Outbox::send(PeerId peer, const Parcel& parcel, Request& request) {
  const std::uint64_t total = parcel.total();
  const bool small = is_small(total);
  const bool may =
      may_begin(total) && (parcel.is_solicited ||
                           (!has_waiting() && allowance_.affords(charge_for(parcel.kind, total))));
  if (parcel.only_copy && !(may && small && room_for(wire::kMessageBytes + total) != nullptr)) {
    return Status::kBusy;
  }
  Operation& op = request.operation();
  request.begin(Operation::Kind::kSend, peer, parcel.tag);
  describe(op, parcel);
  if (may && small && copy_small(op)) return settle_copied(op);
  if (may && !small) {
    start_long(op);
  } else {
    hold_back(op);
  }
  return Status::kPending;
}

MessageId Outbox::admit(std::uint64_t size) {
  allowance_.spend(charge_of(size, cutter_.eager_bytes()));
  announces_ = false;
  return next_id_++;
}

void Outbox::admit(Operation& op) {
  allowance_.spend(charge_for(op.special.wire_kind, op.size));
  if (!op.special.is_solicited) announces_ = false;
  take_id(op);
}

void Outbox::take_id(Operation& op) {
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
  copied(op.message, size);
  return true;
}

bool Outbox::copy_small(Tag tag, std::span<const std::byte> bytes) {
  const std::size_t size = wire::kMessageBytes + bytes.size();
  std::byte* out = room_for(size);
  if (out == nullptr) return false;
  const MessageId id = admit(bytes.size());
  wire::put_message(out, id, tag, bytes.size());
  if (!bytes.empty()) std::memcpy(out + wire::kMessageBytes, bytes.data(), bytes.size());
  copied(id, size);
  return true;
}

// wire.md 4.12
bool Outbox::copy_envelope(Operation& op) {
  const std::size_t carried = op.special.lead_bytes;
  std::byte* out = room_for(wire::kEnvelopeBytes + carried);
  if (out == nullptr) return false;
  envelopes_.spend(charge_of(op.special.wire_kind, op.size, 0));
  announces_ = true;
  take_id(op);
  wire::put_envelope(out,
                     {.type = wire::FrameType::kEnvelope,
                      .kind = op.special.wire_kind,
                      .id = low32(op.message),
                      .tag = op.tag,
                      .total = op.size,
                      .data = {}},
                     carried);
  copy_out(op, 0, {out + wire::kEnvelopeBytes, carried});
  copied(op.message, wire::kEnvelopeBytes + carried);
  op.special.has_envelope = op.special.has_begun = true;
  op.sent = op.granted = carried;
  return true;
}

// A frame was written where room_for() said.
void Outbox::copied(MessageId id, std::size_t bytes) {
  Packet& packet = ready_.back();
  count_message(packet, id);
  packet.used += static_cast<std::uint32_t>(bytes);
}

// Long messages have ids, too: those of small ones that share a packet need not be consecutive.
void Outbox::count_message(Packet& packet, MessageId id) {
  if (packet.used == wire::kHeaderBytes) {
    packet.first_message = id;
    packet.messages = 1;
  } else if (packet.messages != Packet::kUncounted) {
    packet.messages =
        id == packet.first_message + packet.messages ? packet.messages + 1 : Packet::kUncounted;
  }
}

// It is in a packet. Who does not ask for more is done.
Status Outbox::settle_copied(Operation& op) {
  if (op.special.wants_result) {
    keep(op);
    set_stage(op, SendStage::kAwaitingResult);
    return Status::kPending;
  }
  if (op.special.wants_arrival) {
    keep(op);
    set_stage(op, SendStage::kArriving);
    queues_->arriving.push_back(op);
    return Status::kPending;
  }
  finish(op, Status::kOk);
  return Status::kOk;
}

void Outbox::start_long(Operation& op) {
  admit(op);
  keep(op);
  cutter_.start(*queues_, op);
}

// In the order of send(): the first that cannot be admitted holds back all behind it. What the peer
// asked for is held back by no other: it waits for that, and may have to before it takes more.
void Outbox::admit_waiting() {
  if (admit_waiting(queues_->solicited)) admit_waiting(queues_->waiting);
  give_back_queues();
}

// False: there is no packet.
bool Outbox::admit_waiting(Queue& waiting) {
  while (may_leave(waiting)) {
    if (!leave(waiting, waiting.front())) return false;
  }
  return true;
}

bool Outbox::leave(Queue& waiting, Operation& op) {
  const bool whole = can_admit(op);
  if (whole && !is_small(op.size)) {
    waiting.pop_front();
    start_long(op);
    return true;
  }
  const bool in_packet = !whole                  ? copy_envelope(op)
                         : op.special.is_special ? copy_small(op)
                                                 : copy_small(op.tag, {op.buffer, op.size});
  if (!in_packet) return false;
  waiting.pop_front();
  if (!whole && op.sent < op.size) {
    keep(op);
    set_stage(op, SendStage::kAwaitingGrant);
  } else {
    settle_copied(op);
  }
  return true;
}

Packet* Outbox::next_packet(Heads heads) {
  if (anything_waits()) admit_waiting();
  const bool chunks = has_chunks();
  if (!ready_.empty() && !(chunks && chunk_turn_)) {
    chunk_turn_ = true;
    Packet& packet = ready_.front();
    ready_.pop_front();
    if (packet.used > packet_bytes()) [[unlikely]]
      shorten(packet, packet_bytes());
    return &packet;
  }
  chunk_turn_ = false;
  return chunks ? cutter_.cut_chunk(*queues_, heads) : nullptr;
}

channel::Run* Outbox::next_run(const RunWish& wish) {
  if (anything_waits()) admit_waiting();
  if (!ready_.empty() || !has_chunks()) return nullptr;
  return cutter_.cut_run(*queues_, wish);
}

// The unfinished send of that id, if there is one.
Operation* Outbox::find(MessageId id) {
  if (queues_ == nullptr) return nullptr;
  const auto found = queues_->unfinished.find(id);
  return found == queues_->unfinished.end() ? nullptr : &*found;
}

// wire.md 4.5
bool Outbox::handle_grant(std::uint32_t id_low, std::uint64_t limit) {
  const auto id = id_of(id_low);
  if (!id) return false;
  Operation* op = find(*id);
  const bool expects = op != nullptr && (stage_of(*op) == SendStage::kEager ||
                                         stage_of(*op) == SendStage::kAwaitingGrant);
  if (!expects) return true;  // it had its grant before
  if (!cutter_.grant(*queues_, *op, limit)) return false;
  finish_if_acked(*op);
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
  switch (stage_of(op)) {
    case SendStage::kWaiting:
    case SendStage::kArriving:
    case SendStage::kSent:
      break;
    case SendStage::kEager:
    case SendStage::kAwaitingGrant:
    case SendStage::kBulk:
      cutter_.stop(*queues_, op);
      break;
    case SendStage::kAwaitingResult:
      finish(op, status);
      give_back_queues();
      return Found::kYes;
  }
  finish_if_acked(op);
  return Found::kYes;
}

void Outbox::handle_acked(Packet& packet) {
  if (packet.message != nullptr) {
    Operation& op = packet.message->operation();
    PULLMAN_DCHECK(op.packets >= packet.chunks);
    op.packets -= packet.chunks;
    note_begun(op);
    finish_if_acked(op);
    return;
  }
  note_messages(packet);
  if (queues_ != nullptr) finish_arrived();
}

void Outbox::note_begun(Operation& op) {
  if (op.special.has_begun) return;
  op.special.has_begun = true;
  begun_.finish(op.message);
}

// Those that were copied, and are to be told when they have arrived.
void Outbox::finish_arrived() {
  for (auto at = queues_->arriving.begin(); at != queues_->arriving.end();) {
    Operation& op = *at;
    ++at;
    if (!begun_.finished(op.message)) continue;
    queues_->arriving.erase(queues_->arriving.iterator_to(op));
    finish(op, Status::kOk);
  }
  give_back_queues();
}

void Outbox::finish(Operation& op, Status status) {
  if (op.by_id.is_linked()) queues_->unfinished.erase(queues_->unfinished.iterator_to(op));
  op.request->finish(status, status == Status::kOk ? op.size - op.special.lead_bytes : 0);
}

void Outbox::handle_piece_acked(Packet& packet) {
  if (packet.message == nullptr) note_messages(packet);
  go_on(packet);
}

// Those whose last byte the packet carried, or whose envelope.
void Outbox::note_messages(const Packet& packet) {
  if (packet.messages != Packet::kUncounted) [[likely]]
    return begun_.finish_several(packet.first_message, packet.messages);
  if (packet.payload != nullptr) {  // a MESSAGE that left in pieces
    const wire::Frame head = wire::chunk_head(packet.body().data());
    if (head.offset + packet.payload_bytes == head.total) {
      begun_.finish(expand(head.id, begun_.floor()));
    }
    return;
  }
  wire::FrameReader reader(packet.body());
  wire::Frame frame;
  while (reader.next(frame)) {
    const bool begins =
        frame.type == wire::FrameType::kMessage || frame.type == wire::FrameType::kEnvelope;
    if (begins) begun_.finish(expand(frame.id, begun_.floor()));
  }
}

void Outbox::finish_if_acked(Operation& op) {
  if (op.packets > 0 || stage_of(op) != SendStage::kSent) return;
  note_begun(op);
  if (op.special.wants_result && !op.special.has_result) {
    return set_stage(op, SendStage::kAwaitingResult);
  }
  finish(op, op.special.wants_result ? op.result : Status::kOk);
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
  queues_->arriving.clear();
  queues_->eager.clear();
  queues_->bulk.clear();
  while (!queues_->unfinished.empty()) {
    Operation& op = *queues_->unfinished.begin();
    PULLMAN_CHECK(op.packets == 0);
    finish(op, status);
  }
  for (Queue* queue : {&queues_->solicited, &queues_->waiting}) {
    while (!queue->empty()) {
      Operation& op = queue->front();
      queue->pop_front();
      finish(op, status);
    }
  }
  give_back_queues();
}

}  // namespace pullman::message
