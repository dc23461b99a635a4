#include "message/rx/inbox.h"

#include <algorithm>

#include "base/check.h"
#include "base/short_copy.h"
#include "message/send_descriptor.h"

namespace pullman::message {
namespace {

// Whether nothing of the message has to be remembered once its bytes are in the buffer.
bool may_be_delivered_at_once(std::uint8_t kind) {
  return wire::class_of(kind) == wire::Class::kMessage && !wire::is_synchronous(kind);
}

bool may_take_turn(const InMessage& message) {
  return message.kind == 0 || message.arrived.prefix() >= wire::needed(message.kind, message.total);
}

}  // namespace

Inbox::Inbox(const InboxResources& shared, PeerId peer, RemoteOperations* remote)
    : shared_(shared), peer_(peer), allowance_(shared.terms), remote_(remote) {}

Inbox::~Inbox() {
  fail(Status::kClosed);
  const auto forget = [this](Matcher& matcher) {
    matcher.for_each_of(peer_, [this](Unexpected& message) { destroy(message); });
  };
  forget(shared_.matcher);
  if (shared_.more != nullptr) shared_.more->for_each(forget);
  while (active_ != nullptr && active_->first_claimed() != nullptr) {
    destroy(*active_->first_claimed());
  }
  PULLMAN_CHECK(empty());
}

void Inbox::start(MessageId first) {
  ids_.start(first);
  next_turn_ = first;
}

Taken Inbox::handle_message(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  if (ids_.finished(id)) [[unlikely]]
    return take_again(id, frame);
  const std::uint64_t total = frame.data.size();
  if (total > shared_.eager_bytes) return Taken::kRefused;
  const std::uint64_t charge = charge_of(total, shared_.eager_bytes);
  if (id == next_turn_ && ids_.contains(id) && allowance_.covers(charge)) {
    if (frame.kind != 0) {
      if (may_be_delivered_at_once(frame.kind) && knows(frame.kind)) {
        if (Request* receive =
                matcher_of(frame.kind)
                    .take_posted(peer_, frame.tag, total - wire::lead_bytes(frame.kind))) {
          return deliver_special(frame, charge, *receive);
        }
      }
    } else if (Request* receive = shared_.matcher.take_posted(peer_, frame.tag, total)) {
      if (Operation::of(*receive).special.segment_count != 0) {
        return deliver_special(frame, charge, *receive);
      }
      return deliver_at_once(frame, charge, *receive);
    }
  }
  if (wire::is_short(frame.kind, total)) return take_short(id, frame);
  InMessage* message = open(id, frame, total);
  return message == nullptr ? Taken::kRefused : take_bytes(*message, 0, frame.data);
}

// A message that has begun. One that is not remembered is over, or whole.
Taken Inbox::take_again(MessageId id, const wire::Frame& frame) {
  if (find(id) == nullptr) return Taken::kRedundant;
  InMessage* message = open(id, frame, frame.data.size());
  if (message == nullptr) return Taken::kRefused;
  return frame.data.empty() ? Taken::kRedundant : take_bytes(*message, 0, frame.data);
}

// The common case: in order, whole and expected. One copy, nothing remembered.
Taken Inbox::deliver_at_once(const wire::Frame& frame, std::uint64_t charge, Request& receive) {
  const auto& op = Operation::of(receive);
  allowance_.pass(charge);
  copy_short(op.buffer, frame.data.data(), std::min(op.size, frame.data.size()));
  finish(receive, frame.tag, frame.data.size());
  ids_.finish(next_turn_++, shared_.bitmaps);
  take_turns();
  return Taken::kNew;
}

// The same for a message with a lead, or a receive with several segments.
Taken Inbox::deliver_special(const wire::Frame& frame, std::uint64_t charge, Request& receive) {
  allowance_.pass(charge);
  deliver(frame.kind, frame.tag, frame.data, receive);
  ids_.finish(next_turn_++, shared_.bitmaps);
  take_turns();
  return Taken::kNew;
}

// Delivers all bytes of a message, lead included.
void Inbox::deliver(std::uint8_t kind, Tag tag, std::span<const std::byte> bytes,
                    Request& receive) {
  const auto data = bytes.subspan(wire::lead_bytes(kind));
  auto& op = Operation::of(receive);
  if (wire::has_immediate(kind)) op.take_immediate(wire::read_immediate(bytes.data()));
  if (op.special.segment_count != 0) {
    scatter(op, 0, data);
  } else {
    copy_short(op.buffer, data.data(), std::min(op.size, data.size()));
  }
  finish(receive, tag, data.size());
}

// The pool has one for every peer.
ActiveMessages& Inbox::active() {
  if (active_ == nullptr) active_ = shared_.active.take();
  PULLMAN_CHECK(active_ != nullptr);
  return *active_;
}

// Takes a message that arrives whole, so nothing has to be reassembled, but that no receive fits or
// whose turn has not come.
Taken Inbox::take_short(MessageId id, const wire::Frame& frame) {
  if (!ids_.contains(id) || !allowance_.covers(kShortCharge) || !knows(frame.kind)) {
    return Taken::kRefused;
  }
  ShortMessage* message = shared_.shorts.make();
  if (message == nullptr) return Taken::kRefused;  // as if it had been lost
  active().note_made();
  ids_.finish(id, shared_.bitmaps);
  allowance_.charge(kShortCharge);
  message->charge = static_cast<std::uint32_t>(kShortCharge);
  message->kind = frame.kind;
  message->id = id;
  message->peer = peer_;
  message->tag = frame.tag;
  message->total = frame.data.size();
  copy_short(message->bytes.data(), frame.data.data(), frame.data.size());
  if (id != next_turn_) {
    active_->add_early(*message);
    return Taken::kNew;
  }
  ++next_turn_;
  match(*message);
  take_turns();
  return Taken::kNew;
}

// Returns false for a space that does not exist (or has no memory), for regions when there are
// none, and for an answer when nothing was asked: no honest peer sends these.
bool Inbox::knows(std::uint8_t kind) const {
  if (wire::class_of(kind) != wire::Class::kMessage) {
    return remote_ != nullptr && shared_.regions != nullptr;
  }
  const std::uint8_t space = wire::space_of(kind);
  return space == 0 || (shared_.more != nullptr && shared_.more->make(space));
}

// An answer must belong to an unanswered request, and have the length that this asked for.
bool Inbox::may_begin(const wire::Frame& frame, std::uint64_t total) const {
  if (!knows(frame.kind)) return false;
  if (wire::class_of(frame.kind) != wire::Class::kAnswer) return true;
  Request* asker = remote_->find_pending(frame.tag);
  return asker != nullptr && Operation::of(*asker).size == total;
}

Taken Inbox::handle_chunk(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  if (find(id) == nullptr && ids_.finished(id)) return Taken::kRedundant;
  const bool told_before = frame.total == 0;
  if (!told_before && wire::is_short(frame.kind, frame.total)) [[unlikely]] {
    const bool is_all = frame.data.size() == frame.total;
    return is_all ? handle_message(frame) : Taken::kRefused;  // wire.md 4.4
  }
  InMessage* message = told_before ? find_granted(id) : open(id, frame, frame.total);
  return message == nullptr ? Taken::kRefused : take_bytes(*message, frame.offset, frame.data);
}

std::span<std::byte> Inbox::place_for(const wire::Frame& chunk) {
  const MessageId id = expand(chunk.id, next_turn_);
  const bool is_over = find(id) == nullptr && ids_.finished(id);
  if (is_over || wire::is_short(chunk.kind, chunk.total)) return {};
  InMessage* message = open(id, chunk, chunk.total);
  if (message == nullptr) return {};
  const std::size_t length = chunk.data.size();
  if (chunk.offset > message->wanted || length > message->wanted - chunk.offset) return {};
  if (!has_place(*message, shared_.memory)) return {};
  return place_of(*message, chunk.offset, length);
}

// wire.md 4.12
Taken Inbox::handle_envelope(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  const bool is_news = find(id) == nullptr;
  if (is_news && ids_.finished(id)) return Taken::kRedundant;
  InMessage* message = open(id, frame, frame.total);
  if (message == nullptr || !message->announced) return Taken::kRefused;
  if (!frame.data.empty()) return take_bytes(*message, 0, frame.data);
  settle_if_complete(*message);
  take_turns();
  return is_news ? Taken::kNew : Taken::kRedundant;
}

// Returns the message of a chunk that does not name one: it must have been granted (wire.md 2.12).
InMessage* Inbox::find_granted(MessageId id) {
  InMessage* message = find(id);
  const bool granted = message != nullptr && message->state == InState::kFilling &&
                       message->total > unasked_bytes(*message);
  return granted ? message : nullptr;
}

// Returns the message that a frame belongs to, begun if this is its first frame; null if the frame
// contradicts earlier ones, or is beyond the id window or the allowance.
InMessage* Inbox::open(MessageId id, const wire::Frame& frame, std::uint64_t total) {
  if (InMessage* begun = find(id)) {
    const bool same = begun->total == total && begun->tag == frame.tag && begun->kind == frame.kind;
    return same ? begun : nullptr;
  }
  const bool announced = frame.type == wire::FrameType::kEnvelope;
  const std::uint64_t charge = announced ? charge_of_envelope(frame.kind)
                                         : charge_of(frame.kind, total, shared_.eager_bytes);
  if (!ids_.contains(id) || ids_.finished(id) || !allowance_.covers(charge)) return nullptr;
  if (frame.kind != 0 && !may_begin(frame, total)) return nullptr;
  ActiveMessages& messages = active();
  auto* message =
      std::pmr::polymorphic_allocator<>(&shared_.memory).new_object<InMessage>(&shared_.memory);
  allowance_.charge(charge);
  message->charge = static_cast<std::uint32_t>(charge);
  message->kind = frame.kind;
  message->announced = announced;
  message->id = id;
  message->peer = peer_;
  message->tag = frame.tag;
  message->total = total;
  const bool is_atomic = wire::class_of(frame.kind) == wire::Class::kAtomic;
  message->wanted = is_atomic ? total : std::min(total, unasked_bytes(*message));
  ids_.finish(id, shared_.bitmaps);
  messages.note_made();
  messages.add_incomplete(*message);
  if (id == next_turn_ && may_take_turn(*message)) {
    ++next_turn_;
    take_turn(*message);
    take_turns();
  }
  return message;
}

Taken Inbox::take_bytes(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (offset > message.wanted || data.size() > message.wanted - offset) return Taken::kRefused;
  if (!data.empty()) {
    if (!has_place(message, shared_.memory)) return Taken::kRefused;
    const auto added = message.arrived.add({offset, offset + data.size()}, message.max_ranges());
    if (added == RangeSet::Added::kRefused) return Taken::kRefused;
    if (added == RangeSet::Added::kRedundant) return Taken::kRedundant;
    place_bytes(message, offset, data);
  }
  settle_if_complete(message);
  take_turns();
  return Taken::kNew;
}

BytesInOrder Inbox::in_order_behind(const wire::Frame& chunk) const {
  const InMessage* current = active_ == nullptr ? nullptr : std::as_const(*active_).current();
  if (current == nullptr || current->id != expand(chunk.id, next_turn_)) return {};
  return bytes_behind(*current, chunk);
}

void Inbox::handle_in_order(const BytesInOrder& bytes) {
  InMessage& message = *active_->current();
  const std::uint64_t begin = message.arrived.prefix();
  PULLMAN_CHECK(message.arrived.in_order() && begin + bytes.taken() <= message.wanted);
  message.arrived.add({begin, begin + bytes.taken()}, message.max_ranges());
  settle_if_complete(message);
  take_turns();
}

// Takes the turns of all messages whose predecessors have had theirs (wire.md 4.8).
void Inbox::let_turns_be_taken() {
  while (active_ != nullptr && active_->any_waits_turn()) {
    if (ShortMessage* early = active_->find_early(next_turn_)) {
      active_->remove_early(*early);
      ++next_turn_;
      match(*early);
      continue;
    }
    InMessage* next = active_->peek(next_turn_);
    if (next == nullptr || !may_take_turn(*next)) return;
    ++next_turn_;
    take_turn(*next);
    settle_if_complete(*next);
  }
}

void Inbox::take_turn(InMessage& message) {
  active_->note_turn();
  switch (wire::class_of(message.kind)) {
    case wire::Class::kMessage:
      return match(message);
    case wire::Class::kPut:
      return start_put(message);
    case wire::Class::kGet:
      return answer_get(message);
    case wire::Class::kAtomic:
      return do_atomic(message);
    case wire::Class::kAnswer:
      return take_answer(message);
  }
}

void Inbox::match(InMessage& message) {
  message.wants_result = wire::is_synchronous(message.kind);
  Matcher& matcher = matcher_of(message.kind);
  const std::uint64_t bytes = message.total - wire::lead_bytes(message.kind);
  if (Request* receive = matcher.take_posted(peer_, message.tag, bytes)) {
    return give_to(message, *receive);
  }
  message.state = InState::kUnexpected;
  ++shared_.counters.unexpected;
  matcher.add(message);
}

void Inbox::match(ShortMessage& message) {
  Matcher& matcher = matcher_of(message.kind);
  const std::uint64_t bytes = message.total - wire::lead_bytes(message.kind);
  if (Request* receive = matcher.take_posted(peer_, message.tag, bytes)) {
    return give_to(message, *receive);
  }
  message.state = InState::kUnexpected;
  ++shared_.counters.unexpected;
  matcher.add(message);
}

void Inbox::fail(Status status) {
  allowance_.end();
  while (active_ != nullptr && active_->first_due() != nullptr) {
    InMessage& message = *active_->first_due();
    active_->remove_first_due();
    if (message.state == InState::kOver) destroy(message);
  }
  while (active_ != nullptr && active_->first_short_due() != nullptr) {
    destroy(*active_->first_short_due());
  }
  while (active_ != nullptr && active_->first_early() != nullptr) destroy(*active_->first_early());
  while (active_ != nullptr && active_->first_incomplete() != nullptr) {
    InMessage& message = *active_->first_incomplete();
    active_->remove_incomplete(message);
    const bool is_put = wire::class_of(message.kind) == wire::Class::kPut;
    Request* receive = message.receive;
    if (message.state == InState::kFilling && !is_put && receive != nullptr) {
      message.receive = nullptr;
      Operation::of(*receive).finish_receive(status, peer_, message.tag, 0, message.total);
    }
    destroy(message);
  }
}

}  // namespace pullman::message
