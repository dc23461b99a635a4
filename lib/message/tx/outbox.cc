#include "message/tx/outbox.h"

#include <algorithm>

#include "base/check.h"
#include "message/tx/fragments.h"

namespace pullman::message {
namespace {

// Of a message that waits for its GRANT: what tells the receiver of it, its lead included.
constexpr std::uint64_t kBeginning = 1024;

}  // namespace

Outbox::Outbox(const OutboxResources& shared, std::uint32_t peer_index, MessageId first,
               std::size_t first_packet_bytes)
    : shared_(shared),
      admission_(first),
      packer_(peer_index, first_packet_bytes),
      packet_bytes_(static_cast<std::uint16_t>(first_packet_bytes)) {}

Outbox::~Outbox() {
  fail(Status::kClosed);
}

void Outbox::handle_hello(std::size_t packet_bytes, std::uint64_t allowance,
                          std::uint32_t eager_bytes) {
  admission_.handle_hello(allowance, eager_bytes);
  set_packet_bytes(packet_bytes);
  set_small_bytes(packet_bytes);
}

// Does what send_copy() does, without the checks that earlier messages in the packet have passed.
bool Outbox::append(Tag tag, std::span<const std::byte> bytes) noexcept {
  const std::size_t size = bytes.size();
  if (!packer_.fits_last(size) || has_waiting() || size > admission_.eager_bytes()) return false;
  if (!has_id() || !admission_.affords_whole(0, size)) return false;
  packer_.write({.tag = tag, .bytes = bytes}, admission_.admit(0, size));
  return true;
}

// A small message costs the same allowance whatever its kind.
bool Outbox::send_copy(PeerId peer, const SmallMessage& message, Request& request) noexcept {
  const std::size_t total = message.total();
  if (has_waiting() || !may_begin(total) || !admission_.affords(0, total)) return false;
  if (is_small(total)) [[likely]] {
    if (!copy_small(message)) return false;
  } else if (!is_spanning(total) || !copy_spanning(message)) {
    return false;
  }
  Operation::of(request).finish_copied(peer, message.tag, message.bytes.size());
  return true;
}

bool Outbox::send(PeerId peer, Tag tag, std::span<const std::byte> bytes,
                  Request& request) noexcept {
  if (send_copy(peer, {.tag = tag, .bytes = bytes}, request)) return true;
  Operation& op = Operation::of(request);
  op.begin(Operation::Kind::kSend, peer, tag);
  op.buffer = const_cast<std::byte*>(bytes.data());
  op.size = bytes.size();
  const bool waits = has_waiting() || !can_admit(op) || is_small(op.size) || is_spanning(op.size);
  begin(op);
  waits ? wait(op) : start_long(op);
  return false;
}

Status Outbox::send(PeerId peer, const SendDescriptor& descriptor, Request& request) noexcept {
  const std::uint64_t total = descriptor.total();
  const bool small = is_small(total);
  const bool may = (descriptor.is_solicited || !has_waiting()) && may_begin(total) &&
                   (descriptor.is_solicited || admission_.affords(descriptor.kind, total));
  if (descriptor.only_copy &&
      !(may && small && packer_.reserve(wire::kMessageBytes + total, shared_.packets))) {
    return Status::kBusy;
  }
  Operation& op = Operation::of(request);
  op.begin(Operation::Kind::kSend, peer, descriptor.tag);
  describe(op, descriptor);
  const bool copied = may && small && copy_small(op);
  if (copied && !descriptor.wants_result && !descriptor.wants_arrival) {
    op.finish(Status::kOk, descriptor.size);
    return Status::kOk;
  }
  begin(op);
  if (copied) return settle_copied(op);
  may && !small ? start_long(op) : wait(op);
  return Status::kPending;
}

bool Outbox::can_admit(const Operation& op) const {
  return may_begin(op.size) &&
         (op.special.is_solicited || admission_.affords(op.special.wire_kind, op.size));
}

// The send is unfinished. The pool has an ActiveSends for every peer.
void Outbox::begin(Operation& op) {
  if (active_ == nullptr) active_ = shared_.active.take();
  PULLMAN_CHECK(active_ != nullptr);
  active_->table.add(op);
}

void Outbox::wait(Operation& op) {
  ++shared_.counters.held_back;
  active_->waiting.add(op);
}

void Outbox::admit(Operation& op) {
  give_id(op, admission_.admit(op.special.wire_kind, op.size));
}

void Outbox::give_id(Operation& op, MessageId id) {
  op.message = id;
  if (op.asker != nullptr && op.special.is_special) op.asker->message = id;
}

// An atomic is executed only when all its bytes have arrived, so none wait for a GRANT.
void Outbox::start_long(Operation& op) {
  admit(op);
  active_->table.note_id(op);
  const bool whole = wire::class_of(op.special.wire_kind) == wire::Class::kAtomic;
  op.granted = whole ? op.size : std::min<std::uint64_t>(op.size, admission_.eager_bytes());
  active_->chunks.start(op);
}

inline bool Outbox::copy_small(const SmallMessage& message) {
  const std::size_t total = message.total();
  if (!packer_.reserve(wire::kMessageBytes + total, shared_.packets)) return false;
  packer_.write(message, admission_.admit(0, total));
  return true;
}

bool Outbox::copy_small(Operation& op) {
  if (!packer_.reserve(wire::kMessageBytes + op.size, shared_.packets)) return false;
  admit(op);
  packer_.write(op);
  return true;
}

bool Outbox::copy_spanning(const SmallMessage& message) {
  const std::size_t total = message.total();
  MessagePacker::Span span;
  if (!packer_.reserve(total, shared_.packets, span)) return false;
  const MessageId id = admission_.admit(0, total);
  packer_.write(message, id, span);
  note_spanning(id, span.count);
  return true;
}

bool Outbox::copy_spanning(Operation& op) {
  MessagePacker::Span span;
  if (!packer_.reserve(op.size, shared_.packets, span)) return false;
  admit(op);
  packer_.write(op, span);
  note_spanning(op.message, span.count);
  return true;
}

// Each pool has one object for every peer.
void Outbox::note_spanning(MessageId id, std::size_t packets) {
  if (active_ == nullptr) active_ = shared_.active.take();
  PULLMAN_CHECK(active_ != nullptr);
  if (active_->spanning == nullptr) active_->spanning = shared_.spanning.take();
  PULLMAN_CHECK(active_->spanning != nullptr);
  active_->spanning->add(id, packets);
}

// It is in a packet: that finishes it, unless it waits for a RESULT or for its arrival.
Status Outbox::settle_copied(Operation& op) {
  if (!op.special.wants_result && !op.special.wants_arrival) {
    finish(op, Status::kOk);
    return Status::kOk;
  }
  active_->table.note_id(op);
  if (op.special.wants_result) {
    set_stage(op, SendStage::kAwaitingResult);
  } else {
    set_stage(op, SendStage::kArriving);
    active_->arriving.push_back(op);
  }
  return Status::kPending;
}

// Admits those that may be sent now, until there is no packet for one.
void Outbox::admit_waiting() {
  WaitingSends& waiting = active_->waiting;
  const auto admit_all = [&](auto first) {
    for (Operation* op = first(); op != nullptr && can_admit(*op); op = first()) {
      if (is_spanning(*op) || is_small(op->size)) {
        if (!copy_waiting(*op)) return false;
      } else {
        waiting.remove(*op);
        start_long(*op);
      }
    }
    return true;
  };
  if (admit_all([&] { return waiting.first_solicited(); })) {
    admit_all([&] { return waiting.first_in_order(); });
  }
  give_back_active();
}

// Returns false if there is no packet.
bool Outbox::copy_waiting(Operation& op) {
  if (!(is_spanning(op) ? copy_spanning(op) : copy_small(op))) return false;
  active_->waiting.remove(op);
  settle_copied(op);
  return true;
}

bool Outbox::may_announce() const {
  if (!has_waiting()) [[likely]]
    return false;
  const Operation& first = *active_->waiting.first_in_order();
  return may_announce(first) || is_blocked(first);
}

bool Outbox::may_announce(const Operation& op) const {
  const std::uint8_t kind = op.special.wire_kind;
  return admission_.knows_peer() && wire::may_be_announced(kind, op.size) && !can_admit(op) &&
         has_id() && admission_.affords_envelope(kind);
}

// Neither it nor its envelope may be sent at the current limit, and the receiver was not told so.
bool Outbox::is_blocked(const Operation& op) const {
  const std::uint8_t kind = op.special.wire_kind;
  return admission_.knows_peer() && active_->blocked_reported_at != admission_.limit() &&
         has_id() && !can_admit(op) &&
         !(wire::may_be_announced(kind, op.size) && admission_.affords_envelope(kind));
}

bool Outbox::announce() {
  WaitingSends& waiting = active_->waiting;
  while (waiting.has_in_order() && may_announce(*waiting.first_in_order())) {
    if (!announce(*waiting.first_in_order())) break;
  }
  if (waiting.has_in_order() && is_blocked(*waiting.first_in_order())) report_blocked();
  return !packer_.empty();
}

// Its bytes stay in place until the receiver wants them (wire.md 4.12). Returns false if there is
// no packet for the envelope.
bool Outbox::announce(Operation& op) {
  const std::size_t lead = op.special.lead_bytes;
  if (!packer_.reserve(wire::kEnvelopeBytes + lead, shared_.packets)) return false;
  give_id(op, admission_.admit_envelope(op.special.wire_kind));
  active_->table.note_id(op);
  packer_.write_envelope(op);
  op.special.is_announced = true;
  op.sent = op.granted = lead;
  active_->waiting.remove(op);
  active_->chunks.await_grant(op);
  ++shared_.counters.announced;
  return true;
}

// Reports it now if there is a packet for the frame, else later.
void Outbox::report_blocked() {
  if (!packer_.reserve(wire::kBlockedBytes, shared_.packets)) return;
  packer_.write_blocked(admission_.limit());
  active_->blocked_reported_at = admission_.limit();
}

Packet* Outbox::next_packet(Heads heads, std::optional<std::size_t> chunk_bytes) {
  if (anything_waits()) [[unlikely]]
    admit_waiting();
  const bool chunks = has_chunks();
  if (packer_.is_next(chunks)) {
    Packet& packet = packer_.take_first();
    packet.wants_ack = acks_.note_packet(packet.wants_ack);
    return &packet;
  }
  if (!chunks) return nullptr;
  Operation& op = active_->chunks.next();
  // If one chunk may be longer than the eager bytes, they wait for the GRANT, too, and leave with
  // the rest as one chunk.
  const bool awaits_grant = stage_of(op) == SendStage::kEager && !op.special.is_announced &&
                            op.sent == 0 && op.granted < op.size;
  if (awaits_grant && chunk_bytes > admission_.eager_bytes()) {
    op.granted = std::min<std::uint64_t>(op.granted, kBeginning);
  }
  Packet* packet = cut_chunk(op, heads, chunk_bytes.value_or(packet_bytes_), shared_.packets);
  if (packet == nullptr) return nullptr;
  packet->peer = packer_.peer_index();
  active_->chunks.note_cut(op);
  packet->wants_ack = requests_ack(op, 1);
  return packet;
}

channel::Run* Outbox::next_run(const RunWish& wish) {
  if (anything_waits()) admit_waiting();
  if (!packer_.empty() || !has_chunks()) return nullptr;
  ChunkScheduler& chunks = active_->chunks;
  Operation& op = chunks.next();
  const bool few = chunks.yields(op) || (wish.heads == Heads::kPiggyback && may_be_bulk(op));
  channel::Run* run = cut_run(
      op,
      {.max_chunks = std::min<std::size_t>(wish.max_chunks, few ? kMinRun : channel::Run::kMost),
       .packet_bytes = packet_bytes_,
       .equal_lengths = wish.equal_lengths,
       .others_follow = chunks.has_others(op),
       .shares_burst = wish.shares_burst,
       .heads = wish.heads},
      shared_.packets);
  if (run == nullptr) return nullptr;
  run->peer = packer_.peer_index();
  chunks.note_cut(op);
  run->wants_ack = requests_ack(op, run->count);
  return run;
}

// Whether the last `chunks` chunks that were cut of that send ask for their ACK. No caller waits
// for a send of the library's own copy, nor for an answer to the peer.
bool Outbox::requests_ack(const Operation& op, std::uint32_t chunks) {
  return acks_.note_chunks({.count = chunks,
                            .end_message = stage_of(op) == SendStage::kSent,
                            .are_awaited = !op.special.is_own_copy && !op.special.is_solicited,
                            .more_follow = active_->chunks.has_chunks(),
                            .pool_is_short = shared_.packets.is_short()});
}

Packet* Outbox::control_packet(std::size_t bytes) {
  Packet* packet = shared_.packets.take(wire::kHeaderBytes + bytes);
  if (packet != nullptr) packet->peer = packer_.peer_index();
  return packet;
}

std::uint64_t Outbox::bytes_to_cut() const {
  return active_ == nullptr ? 0 : active_->chunks.bytes_left();
}

std::size_t Outbox::packets_left(Heads heads) const {
  if (active_ == nullptr) return 0;
  if (anything_waits()) return kManyPackets;
  return active_->chunks.packets_left(heads, packet_bytes_);
}

bool Outbox::several_fill(std::size_t packets) const {
  return active_ != nullptr && active_->chunks.several_fill(packets, packet_bytes_);
}

bool Outbox::splits_next(std::size_t packets) {
  return has_chunks() && would_split(active_->chunks.next(), packets, packet_bytes_);
}

bool Outbox::handle_grant(std::uint32_t id_low, std::uint64_t limit) {
  const std::optional<MessageId> id = id_of(id_low);
  if (!id) return false;
  Operation* op = active_ == nullptr ? nullptr : active_->table.find(*id);
  if (op == nullptr) return true;  // it is finished
  if (!active_->chunks.handle_grant(*op, limit, admission_.eager_bytes())) return false;
  if (stage_of(*op) == SendStage::kSent) finish_if_acked(*op);
  return true;
}

// wire.md 10.2: bytes that are not sent yet are not wanted.
Outbox::Found Outbox::handle_result(MessageId id, Status status) {
  Operation* op = active_ == nullptr ? nullptr : active_->table.find(id);
  if (op == nullptr || op->special.has_result) return Found::kNone;
  if (!op->special.wants_result) return Found::kRefused;
  op->special.has_result = true;
  op->result = status;
  if (stage_of(*op) == SendStage::kAwaitingResult) {
    finish(*op, status);
    give_back_active();
    return Found::kYes;
  }
  active_->chunks.stop(*op);
  finish_if_acked(*op);
  return Found::kYes;
}

void Outbox::handle_acked(Packet& packet) {
  if (packet.message != nullptr) {
    Operation& op = Operation::of(*packet.message);
    PULLMAN_DCHECK(op.packets >= packet.chunks);
    op.packets -= packet.chunks;
    finish_if_acked(op);
    return;
  }
  finish_messages(packet);
  if (active_ != nullptr) finish_arrived();
}

void Outbox::handle_fragment_acked(Packet& packet) {
  if (packet.message == nullptr) finish_messages(packet);
  advance_fragment(packet);
}

// Finishes the messages that were in flight in this packet only.
void Outbox::finish_messages(const Packet& packet) {
  if (packet.messages != Packet::kUncounted) [[likely]] {
    return admission_.note_several_begun(packet.first_message, packet.messages, shared_.bitmaps);
  }
  MessagePacker::for_each_message(packet, [this](std::uint32_t id_low) { note_arrived(id_low); });
}

// A packet with all or a part of that message has arrived.
void Outbox::note_arrived(std::uint32_t id_low) {
  const MessageId id = admission_.own_id_of(id_low);
  if (admission_.has_begun(id)) return;  // its bytes were acked before its envelope
  SpanningMessages* spanning = active_ == nullptr ? nullptr : active_->spanning;
  if (spanning != nullptr && !spanning->note_arrived(id)) return;
  admission_.note_begun(id, shared_.bitmaps);
  if (spanning != nullptr && spanning->empty()) give_back_spanning();
}

// Finishes sends that were copied and wait for their arrival.
void Outbox::finish_arrived() {
  SendQueue& arriving = active_->arriving;
  for (auto at = arriving.begin(); at != arriving.end();) {
    Operation& op = *at;
    ++at;
    if (!admission_.has_begun(op.message)) continue;
    arriving.erase(arriving.iterator_to(op));
    finish(op, Status::kOk);
  }
  give_back_active();
}

// When no packet refers to its bytes any more the receiver knows of it, and it may be finished.
void Outbox::finish_if_acked(Operation& op) {
  if (op.packets > 0) return;
  const SendStage stage = stage_of(op);
  if (stage != SendStage::kSent && stage != SendStage::kAwaitingGrant) return;
  admission_.note_begun(op.message, shared_.bitmaps);
  if (stage == SendStage::kAwaitingGrant) return;
  if (op.special.wants_result && !op.special.has_result) {
    return set_stage(op, SendStage::kAwaitingResult);
  }
  finish(op, op.special.wants_result ? op.result : Status::kOk);
  give_back_active();
}

void Outbox::finish(Operation& op, Status status) {
  active_->table.remove(op);
  op.finish(status, status == Status::kOk ? op.size - op.special.lead_bytes : 0);
}

void Outbox::handle_bye(const wire::Frame& bye) {
  if (active_ == nullptr) return;
  const Delivered delivered(bye, admission_.next_id());
  active_->table.for_each([&](Operation& op) {
    if (stage_of(op) == SendStage::kWaiting || !delivered.contains(op.message)) return;
    if (op.special.wants_result && !op.special.has_result) return;
    if (stage_of(op) == SendStage::kArriving) {
      active_->arriving.erase(active_->arriving.iterator_to(op));
    } else {
      active_->chunks.stop(op);
    }
    finish(op, op.special.wants_result ? op.result : Status::kOk);
  });
  give_back_active();
}

void Outbox::abandon(Packet& packet) {
  if (packet.message != nullptr) Operation::of(*packet.message).packets -= packet.chunks;
  shared_.packets.give_back(packet);
}

void Outbox::fail(Status status) {
  packer_.give_back_all(shared_.packets);
  if (active_ == nullptr) return;
  active_->waiting.clear();
  active_->arriving.clear();
  active_->chunks.clear();
  if (active_->spanning != nullptr) {
    active_->spanning->clear();
    give_back_spanning();
  }
  active_->table.fail(status);
  give_back_active();
}

// Gives it back unless something still needs it.
void Outbox::give_back_active() {
  if (active_ == nullptr || !active_->table.empty() || active_->spanning != nullptr) return;
  active_->blocked_reported_at = 0;
  shared_.active.give_back(active_);
  active_ = nullptr;
}

void Outbox::give_back_spanning() {
  shared_.spanning.give_back(active_->spanning);
  active_->spanning = nullptr;
}

}  // namespace pullman::message
