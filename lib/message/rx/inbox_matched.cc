// Inbox: messages whose turn has come. Their bytes go to the receive that matched, or to a region;
// they are over when all bytes have arrived and their sender has been sent the frames that it waits
// for.
#include "base/check.h"
#include "message/rx/inbox.h"

namespace pullman::message {

void Inbox::attach(Unexpected& message, Request& receive) {
  ++shared_.counters.caught_up;
  matcher_of(message.kind).remove(message);
  if (is_short(message)) return give_to(as_short(message), receive);
  give_to(as_whole(message), receive);
  settle_if_complete(as_whole(message));
}

void Inbox::claim(Unexpected& message) {
  matcher_of(message.kind).remove(message);
  message.state = InState::kClaimed;
  active_->add_claimed(message);
}

Unexpected* Inbox::find_claimed(MessageId id) {
  return active_ == nullptr ? nullptr : active_->find_claimed(id);
}

void Inbox::attach_claimed(Unexpected& message, Request& receive) noexcept {
  ++shared_.counters.caught_up;
  active_->remove_claimed(message);
  if (is_short(message)) return give_to(as_short(message), receive);
  give_to(as_whole(message), receive);
  settle_if_complete(as_whole(message));
}

void Inbox::discard(Unexpected& claimed) {
  active_->remove_claimed(claimed);
  if (is_short(claimed)) return end(as_short(claimed));
  InMessage& message = as_whole(claimed);
  fill_nothing(message);
  grant(message, 0);
  settle_if_complete(message);
}

void Inbox::give_to(ShortMessage& message, Request& receive) {
  deliver(message.kind, message.tag, std::span(message.bytes).first(message.total), receive);
  end(message);
}

// The message is matched: moves the held bytes to the buffer, returns the charge for them, and
// tells the sender of a long message how much of it is wanted.
void Inbox::give_to(InMessage& message, Request& receive) {
  const auto& op = Operation::of(receive);
  message.receive = &receive;
  fill(message, op.special.segment_count == 0 ? op.buffer : nullptr, op.size);
  grant(message, op.size);
}

// Its bytes go to `bytes` from now on. Returns the charge for holding them; the charge for what is
// remembered until the message is over stays.
void Inbox::fill(InMessage& message, std::byte* bytes, std::size_t room) {
  active_->note_filling();
  redirect(message, bytes, room, shared_.memory);
  const auto kept = static_cast<std::uint32_t>(kMessageCharge + charge_behind(message.kind));
  if (message.charge <= kept) return;  // an answer has none
  allowance_.give_back(message.charge - kept);
  message.charge = kept;
}

// Drops the bytes of the message.
void Inbox::fill_nothing(InMessage& message) {
  message.receive = nullptr;
  fill(message, nullptr, 0);
}

// Tells the sender of a long message that `bytes` of the caller's bytes are wanted.
void Inbox::grant(InMessage& message, std::uint64_t bytes) {
  const std::uint64_t unasked = unasked_bytes(message);
  if (message.total <= unasked) return;
  const std::uint64_t useful =
      std::min<std::uint64_t>(message.total, bytes + wire::lead_bytes(message.kind));
  message.wanted = std::max(unasked, useful);
  active_->add_due(message);
}

// Finishes the message if all its bytes have arrived and it has a receive. A long message that is
// not matched yet is never complete: its sender has not even sent the rest.
void Inbox::settle_if_complete(InMessage& message) {
  if (!message.complete()) return;
  const bool matched = message.state == InState::kFilling;
  if (!matched && message.total > unasked_bytes(message)) return;
  if (message.state == InState::kWaitingTurn) return;
  active_->remove_incomplete(message);
  if (matched) end(message);
}

void Inbox::start_put(InMessage& message) {
  const std::span<std::byte> place = rma().begin_put(message);
  fill(message, place.data(), place.size());
  grant(message, message.room);
}

void Inbox::answer_get(InMessage& message) {
  const wire::GetLead lead = wire::read_get_lead(message.bytes);
  fill_nothing(message);
  rma().answer_get(message, lead, allowance_);
}

void Inbox::do_atomic(InMessage& message) {
  const AtomicRequest request(message);
  fill_nothing(message);
  rma().execute(message, request, allowance_);
}

void Inbox::take_answer(InMessage& message) {
  active_->note_answer();
  Request* asker = remote_->find_pending(message.tag);
  if (asker != nullptr) {
    remote_->remove_pending(*asker);
    return give_to(message, *asker);
  }
  fill_nothing(message);  // a second answer
  grant(message, 0);
}

// The message is done, except for a RESULT that may be due.
void Inbox::end(ShortMessage& message) {
  message.state = InState::kOver;
  if (!wire::is_synchronous(message.kind) || allowance_.ended()) return destroy(message);
  active_->add_due(message);
}

// The message is done, except for a frame that may be due.
void Inbox::end(InMessage& message) {
  message.state = InState::kOver;
  active_->note_not_filling(message);
  if (wire::class_of(message.kind) == wire::Class::kPut) {
    rma().end_put(message);
  } else if (wire::class_of(message.kind) == wire::Class::kAnswer) {
    if (message.receive != nullptr)
      Operation::of(*message.receive).finish(Status::kOk, message.room);
  } else if (Request* receive = message.receive) {
    if (wire::has_immediate(message.kind)) {
      Operation& op = Operation::of(*receive);
      op.take_immediate(wire::read_immediate(op.lead.data()));
    }
    finish(*receive, message.tag, message.total - wire::lead_bytes(message.kind));
  }
  const bool tells = message.wants_result && !allowance_.ended();
  if (tells && !message.to_grant.is_linked()) active_->add_due(message);
  if (!message.to_grant.is_linked()) destroy(message);
}

void Inbox::destroy(InMessage& message) {
  if (message.state == InState::kWaitingTurn) active_->note_turn();
  if (message.state == InState::kUnexpected) matcher_of(message.kind).remove(message);
  if (message.state == InState::kClaimed) active_->remove_claimed(message);
  if (message.state == InState::kFilling) {
    active_->note_not_filling(message);
    if (message.in_order.is_linked()) RmaTarget::leave_region(message);
  }
  release_place(message, shared_.memory);
  allowance_.give_back(message.charge);
  std::pmr::polymorphic_allocator<>(&shared_.memory).delete_object(&message);
  if (active_->note_destroyed()) give_back_active();
}

void Inbox::destroy(ShortMessage& message) {
  switch (message.state) {
    case InState::kWaitingTurn:
      active_->remove_early(message);
      break;
    case InState::kUnexpected:
      matcher_of(message.kind).remove(message);
      break;
    case InState::kClaimed:
      active_->remove_claimed(message);
      break;
    case InState::kOver:
      active_->remove_due(message);
      break;
    case InState::kFilling:
      break;  // impossible: a short message is never filled
  }
  allowance_.give_back(message.charge);
  shared_.shorts.destroy(&message);
  if (active_->note_destroyed()) give_back_active();
}

void Inbox::destroy(Unexpected& message) {
  is_short(message) ? destroy(as_short(message)) : destroy(as_whole(message));
}

// No message is left.
void Inbox::give_back_active() {
  active_->reset();
  shared_.active.give_back(active_);
  active_ = nullptr;
}

}  // namespace pullman::message
