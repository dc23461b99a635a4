#include "message/rx/inbox.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/short_copy.h"
#include "message/send_descriptor.h"

namespace pullman::message {
namespace {

// Nothing is to be remembered of it when its bytes are in the buffer.
bool may_be_delivered_at_once(std::uint8_t kind) {
  return wire::class_of(kind) == wire::Class::kMessage && !wire::is_synchronous(kind);
}

bool may_take_turn(const InMessage& message) {
  return message.kind == 0 || message.arrived.prefix() >= wire::needed(message.kind, message.total);
}

wire::Result result_of(const InMessage& message) {
  return message.refused ? wire::Result::kRefusedAccess : wire::Result::kDone;
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
  while (begun_ != nullptr && !begun_->claimed.empty()) destroy(begun_->claimed.front());
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
      if (receive->operation().special.piece_count != 0) {
        return deliver_special(frame, charge, *receive);
      }
      return deliver_at_once(frame, charge, *receive);
    }
  }
  if (wire::is_short(frame.kind, total)) return take_short(id, frame);
  InMessage* message = open(id, frame, total);
  return message == nullptr ? Taken::kRefused : place(*message, 0, frame.data);
}

// A message that has begun. What is not remembered of it is over, or whole.
Taken Inbox::take_again(MessageId id, const wire::Frame& frame) {
  if (find(id) == nullptr) return Taken::kRedundant;
  InMessage* message = open(id, frame, frame.data.size());
  if (message == nullptr) return Taken::kRefused;
  return frame.data.empty() ? Taken::kRedundant : place(*message, 0, frame.data);
}

inline void Inbox::finish(Request& receive, Tag tag, std::uint64_t total) {
  const std::size_t size = receive.operation().size;
  ++shared_.counters.messages;
  shared_.counters.bytes += total;
  receive.finish_receive(total > size ? Status::kTruncated : Status::kOk, peer_, tag,
                         static_cast<std::size_t>(std::min<std::uint64_t>(total, size)), total);
}

// The common case: in order, whole and expected. One copy, nothing remembered.
Taken Inbox::deliver_at_once(const wire::Frame& frame, std::uint64_t charge, Request& receive) {
  const auto& op = receive.operation();
  allowance_.pass(charge);
  copy_short(op.buffer, frame.data.data(), std::min(op.size, frame.data.size()));
  finish(receive, frame.tag, frame.data.size());
  ids_.finish(next_turn_++, shared_.bitmaps);
  take_turns();
  return Taken::kNew;
}

// The same with a lead, or into several places.
Taken Inbox::deliver_special(const wire::Frame& frame, std::uint64_t charge, Request& receive) {
  allowance_.pass(charge);
  deliver(frame.kind, frame.tag, frame.data, receive);
  ids_.finish(next_turn_++, shared_.bitmaps);
  take_turns();
  return Taken::kNew;
}

// All bytes of a message, lead included.
void Inbox::deliver(std::uint8_t kind, Tag tag, std::span<const std::byte> bytes,
                    Request& receive) {
  const auto data = bytes.subspan(wire::lead_bytes(kind));
  if (wire::has_immediate(kind)) receive.take_immediate(wire::read_immediate(bytes.data()));
  auto& op = receive.operation();
  if (op.special.piece_count != 0) {
    scatter(op, 0, data);
  } else {
    copy_short(op.buffer, data.data(), std::min(op.size, data.size()));
  }
  finish(receive, tag, data.size());
}

// A message that comes whole, with nothing to be put together; no receive fits it, or it is not its
// turn.
Taken Inbox::take_short(MessageId id, const wire::Frame& frame) {
  if (!ids_.contains(id) || !allowance_.covers(kShortCharge) || !knows(frame.kind)) {
    return Taken::kRefused;
  }
  ShortMessage* message = shared_.shorts.make();
  if (message == nullptr) return Taken::kRefused;  // as if it had been lost
  if (begun_ == nullptr) begun_ = shared_.begun.take();
  PULLMAN_CHECK(begun_ != nullptr);  // the pool has one for every peer
  ++begun_->kept;
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
    message->begin_early();
    begun_->early.insert(*message);
    ++begun_->waiting_turn;
    return Taken::kNew;
  }
  ++next_turn_;
  match(*message);
  take_turns();
  return Taken::kNew;
}

void Inbox::match(ShortMessage& message) {
  Matcher& matcher = matcher_of(message.kind);
  const std::uint64_t bytes = message.total - wire::lead_bytes(message.kind);
  if (Request* receive = matcher.take_posted(peer_, message.tag, bytes)) {
    return give(message, *receive);
  }
  message.state = InState::kUnexpected;
  ++shared_.counters.unexpected;
  matcher.add(message);
}

void Inbox::give(ShortMessage& message, Request& receive) {
  deliver(message.kind, message.tag, std::span(message.bytes).first(message.total), receive);
  end(message);
}

// All is done, but for a RESULT that may be due.
void Inbox::end(ShortMessage& message) {
  message.state = InState::kOver;
  if (!wire::is_synchronous(message.kind) || allowance_.ended()) return destroy(message);
  begun_->results.push_back(message);
}

ShortMessage* Inbox::find_early(MessageId id) const {
  const auto found = begun_->early.find(id);
  return found == begun_->early.end() ? nullptr : &as_short(*found);
}

// A message of a space that is not there (or for which there is no memory), or one for regions that
// are not, is from nobody who means well; nor is an answer to nothing that was asked.
bool Inbox::knows(std::uint8_t kind) const {
  if (wire::class_of(kind) != wire::Class::kMessage) {
    return remote_ != nullptr && shared_.regions != nullptr;
  }
  const std::uint8_t space = wire::space_of(kind);
  return space == 0 || (shared_.more != nullptr && shared_.more->make(space));
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
  return message == nullptr ? Taken::kRefused : place(*message, frame.offset, frame.data);
}

// wire.md 4.12
Taken Inbox::handle_envelope(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  const bool is_news = find(id) == nullptr;
  if (is_news && ids_.finished(id)) return Taken::kRedundant;
  InMessage* message = open(id, frame, frame.total);
  if (message == nullptr || !message->announced) return Taken::kRefused;
  if (!frame.data.empty()) return place(*message, 0, frame.data);
  settle_if_complete(*message);
  take_turns();
  return is_news ? Taken::kNew : Taken::kRedundant;
}

// The message with this id, if it has begun and is not over.
InMessage* Inbox::find(MessageId id) {
  if (begun_ == nullptr) return nullptr;
  InMessage*& current = begun_->current;
  if (current != nullptr && current->id == id) return current;
  const auto found = begun_->incomplete.find(id);
  if (found == begun_->incomplete.end()) return nullptr;
  return current = &*found;
}

// The message of a chunk that does not say which: one that was granted (wire.md 2.12).
InMessage* Inbox::find_granted(MessageId id) {
  InMessage* message = find(id);
  const bool granted = message != nullptr && message->state == InState::kFilling &&
                       message->total > unasked_bytes(*message);
  return granted ? message : nullptr;
}

// The message a frame belongs to, begun if this is its first frame; null if the frame contradicts
// what came before, or lies beyond the id window or the allowance.
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
  if (begun_ == nullptr) begun_ = shared_.begun.take();
  PULLMAN_CHECK(begun_ != nullptr);  // the pool has one for every peer
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
  begun_->incomplete.insert(*message);
  ++begun_->kept;
  ++begun_->waiting_turn;
  begun_->current = message;
  if (id == next_turn_ && may_take_turn(*message)) {
    ++next_turn_;
    take_turn(*message);
    take_turns();
  }
  return message;
}

Taken Inbox::place(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (offset > message.wanted || data.size() > message.wanted - offset) return Taken::kRefused;
  if (!data.empty()) {
    if (!has_place(message)) return Taken::kRefused;
    const auto added = message.arrived.add({offset, offset + data.size()}, message.max_ranges());
    if (added == RangeSet::Added::kRefused) return Taken::kRefused;
    if (added == RangeSet::Added::kRedundant) return Taken::kRedundant;
    write(message, offset, data);
  }
  settle_if_complete(message);
  take_turns();
  return Taken::kNew;
}

Inbox::InOrder Inbox::in_order_behind(const wire::Frame& chunk) const {
  const InMessage* current = begun_ == nullptr ? nullptr : begun_->current;
  if (current == nullptr || current->id != expand(chunk.id, next_turn_)) return {};
  const InMessage& message = *current;
  const std::uint64_t begin = message.arrived.prefix();
  const bool same = chunk.total == 0 || (chunk.tag == message.tag && chunk.total == message.total &&
                                         chunk.kind == message.kind);
  const std::size_t lead = wire::lead_bytes(message.kind);
  if (message.state != InState::kFilling || !message.arrived.in_order() || !same ||
      begin != chunk.offset + chunk.data.size() || begin < lead) {
    return {};
  }
  const std::size_t at = std::min<std::size_t>(begin - lead, message.room);
  if (message.room == at) return {message.wanted - begin, {}};
  if (message.bytes != nullptr) {
    return {message.wanted - begin, std::span(message.bytes, message.room).subspan(at)};
  }
  const auto place = one_place_of_sink(message.receive->operation(), at);
  return {std::min<std::uint64_t>(message.wanted - begin, place.size()), place};
}

void Inbox::InOrder::put(std::span<const std::byte> data) {
  const std::size_t fits = std::min(data.size(), buffer_.size());
  if (fits > 0) std::memcpy(buffer_.data(), data.data(), fits);
  buffer_ = buffer_.subspan(fits);
  most_ -= data.size();
  taken_ += data.size();
}

void Inbox::handle_in_order(const InOrder& bytes) {
  InMessage& message = *begun_->current;
  const std::uint64_t begin = message.arrived.prefix();
  PULLMAN_CHECK(message.arrived.in_order() && begin + bytes.taken() <= message.wanted);
  message.arrived.add({begin, begin + bytes.taken()}, message.max_ranges());
  settle_if_complete(message);
  take_turns();
}

// Into the receive's buffer, cut to its size, or into memory held for the message.
void Inbox::write(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (message.state == InState::kFilling) {
    if (message.kind != 0) {
      const std::size_t lead = wire::lead_bytes(message.kind);
      if (offset < lead) {
        write_lead(message, offset, data);
        data = data.subspan(std::min<std::size_t>(data.size(), lead - offset));
      }
      offset = offset < lead ? 0 : offset - lead;
    }
    if (offset >= message.room || data.empty()) return;
    if (message.bytes == nullptr) return scatter(message.receive->operation(), offset, data);
    std::memcpy(message.bytes + offset, data.data(),
                std::min<std::size_t>(data.size(), message.room - offset));
    return;
  }
  std::memcpy(message.bytes + offset, data.data(), data.size());
}

// What nobody has posted a receive for is held. Without memory for it, it counts as lost: noted as
// arrived it would not come again.
bool Inbox::has_place(InMessage& message) try {
  if (message.state == InState::kFilling || message.bytes != nullptr) return true;
  message.bytes = static_cast<std::byte*>(shared_.memory.allocate(message.wanted, 1));
  message.room = message.wanted;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// Lets every message match whose predecessors have all had their turn (wire.md 4.8).
void Inbox::let_turns_be_taken() {
  while (begun_ != nullptr && begun_->waiting_turn > 0) {
    if (ShortMessage* early = find_early(next_turn_)) {
      begun_->early.erase(begun_->early.iterator_to(*early));
      early->end_early();
      --begun_->waiting_turn;
      ++next_turn_;
      match(*early);
      continue;
    }
    const auto next = begun_->incomplete.find(next_turn_);
    if (next == begun_->incomplete.end() || !may_take_turn(*next)) return;
    ++next_turn_;
    InMessage& message = *next;
    take_turn(message);
    settle_if_complete(message);
  }
}

void Inbox::take_turn(InMessage& message) {
  --begun_->waiting_turn;
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

void Inbox::attach(Unexpected& message, Request& receive) {
  ++shared_.counters.caught_up;
  matcher_of(message.kind).remove(message);
  if (is_short(message)) return give(as_short(message), receive);
  give_to(as_whole(message), receive);
  settle_if_complete(as_whole(message));
}

void Inbox::claim(Unexpected& message) {
  matcher_of(message.kind).remove(message);
  message.state = InState::kClaimed;
  begun_->claimed.push_back(message);
}

Unexpected* Inbox::find_claimed(MessageId id) {
  if (begun_ == nullptr) return nullptr;
  for (Unexpected& message : begun_->claimed) {
    if (message.id == id) return &message;
  }
  return nullptr;
}

void Inbox::attach_claimed(Unexpected& message, Request& receive) noexcept {
  ++shared_.counters.caught_up;
  begun_->claimed.erase(begun_->claimed.iterator_to(message));
  if (is_short(message)) return give(as_short(message), receive);
  give_to(as_whole(message), receive);
  settle_if_complete(as_whole(message));
}

void Inbox::discard(Unexpected& claimed) {
  begun_->claimed.erase(begun_->claimed.iterator_to(claimed));
  if (is_short(claimed)) return end(as_short(claimed));
  InMessage& message = as_whole(claimed);
  message.receive = nullptr;
  fill(message, nullptr, 0);
  want(message, 0);
  settle_if_complete(message);
}

// Matched: what was held moves to the buffer, the charge for it goes back, and the sender of a long
// message learns how much of it is wanted.
void Inbox::give_to(InMessage& message, Request& receive) {
  const auto& op = receive.operation();
  message.receive = &receive;
  fill(message, op.special.piece_count == 0 ? op.buffer : nullptr, op.size);
  want(message, op.size);
}

// From now on its bytes go there; what was held does now.
void Inbox::fill(InMessage& message, std::byte* bytes, std::size_t room) {
  std::byte* const held = message.bytes;
  const std::size_t held_bytes = message.room;
  message.state = InState::kFilling;
  message.bytes = bytes;
  message.room = room;
  ++begun_->filling;
  if (held != nullptr) {
    message.arrived.for_each([&](Range range) {
      write(message, range.begin, {held + range.begin, range.end - range.begin});
    });
    shared_.memory.deallocate(held, held_bytes, 1);
  }
  const auto kept = static_cast<std::uint32_t>(kMessageCharge + charge_behind(message.kind));
  if (message.charge <= kept) return;  // an answer has none
  allowance_.give_back(message.charge - kept);
  message.charge = kept;
}

// So many of the caller's bytes are of use: the sender of a long message is told.
void Inbox::want(InMessage& message, std::uint64_t bytes) {
  const std::uint64_t unasked = unasked_bytes(message);
  if (message.total <= unasked) return;
  const std::uint64_t useful =
      std::min<std::uint64_t>(message.total, bytes + wire::lead_bytes(message.kind));
  message.wanted = std::max(unasked, useful);
  begun_->grants.push_back(message);
}

// All bytes are here. With a receive the message is done. A long message that is not
// matched yet is never complete: the rest of it has not even been sent.
void Inbox::settle_if_complete(InMessage& message) {
  if (!message.complete()) return;
  const bool matched = message.state == InState::kFilling;
  if (!matched && message.total > unasked_bytes(message)) return;
  if (message.state == InState::kWaitingTurn) return;
  if (message.by_id.is_linked()) {
    begun_->incomplete.erase(begun_->incomplete.iterator_to(message));
    if (begun_->current == &message) begun_->current = nullptr;
  }
  if (!matched) return;
  end(message);
}

// All is done, but for a frame that may be due.
void Inbox::end(InMessage& message) {
  message.state = InState::kOver;
  --begun_->filling;
  if (wire::class_of(message.kind) == wire::Class::kAnswer) --begun_->answers;
  if (wire::class_of(message.kind) == wire::Class::kPut) {
    end_put(message);
  } else if (wire::class_of(message.kind) == wire::Class::kAnswer) {
    if (message.receive != nullptr) message.receive->finish(Status::kOk, message.room);
  } else if (Request* receive = message.receive) {
    if (wire::has_immediate(message.kind)) {
      receive->take_immediate(wire::read_immediate(receive->operation().lead.data()));
    }
    finish(*receive, message.tag, message.total - wire::lead_bytes(message.kind));
  }
  const bool tells = message.wants_result && !allowance_.ended();
  if (tells && !message.to_grant.is_linked()) begun_->grants.push_back(message);
  if (!message.to_grant.is_linked()) destroy(message);
}

std::size_t Inbox::write_frames(std::byte* out, std::size_t room) {
  std::size_t used = 0;
  while (begun_ != nullptr && !begun_->grants.empty() && room - used >= wire::kGrantBytes) {
    InMessage& message = as_whole(begun_->grants.front());
    begun_->grants.pop_front();
    if (message.state == InState::kOver && message.wants_result) {
      used += wire::put_result(out + used, message.id, result_of(message));
    } else {
      used += wire::put_grant(out + used, message.id, message.wanted);
    }
    if (message.state == InState::kOver) destroy(message);
  }
  while (begun_ != nullptr && !begun_->results.empty() && room - used >= wire::kResultBytes) {
    ShortMessage& message = as_short(begun_->results.front());
    used += wire::put_result(out + used, message.id, wire::Result::kDone);
    destroy(message);
  }
  if (allowance_.worth_telling() && room - used >= wire::kAllowanceBytes) {
    const AllowanceGranted::Told told = allowance_.tell();
    used += wire::put_allowance(out + used, told.limit, told.whole_limit);
  }
  return used;
}

// The oldest messages that have begun and lack something, each by its id; as far beyond all that
// have begun as there is room.
std::size_t Inbox::write_bye(std::byte* out) const {
  std::array<std::uint32_t, wire::kMaxByeExcepted> excepted;
  std::size_t lacking = 0;
  MessageId missing = ids_.floor();
  if (begun_ != nullptr) {
    for (const InMessage& message : begun_->incomplete) {
      if (message.id >= missing) break;
      if (has_all(message)) continue;
      if (lacking == excepted.size()) {
        missing = message.id;
        break;
      }
      excepted[lacking++] = low32(message.id);
    }
  }
  std::array<std::uint64_t, wire::kMaxByeData / 8> words{};
  std::size_t count = 0;
  const std::size_t room = (wire::kMaxByeData - 4 * lacking) / 8;
  for (std::size_t at = 0; at < 64 * room; ++at) {
    if (!has_all_of(missing + 1 + at)) continue;
    words[at / 64] |= std::uint64_t{1} << at % 64;
    count = at / 64 + 1;
  }
  return wire::put_bye(out, missing, std::span(excepted).first(lacking),
                       std::span(words).first(count));
}

void Inbox::withdraw_lacking() {
  if (begun_ == nullptr) return;
  for (InMessage& message : begun_->incomplete) {
    if (message.state == InState::kUnexpected && !has_all(message)) claim(message);
  }
}

bool Inbox::is_news(const wire::Frame& frame) const {
  return !has_all_of(expand(frame.id, next_turn_));
}

// All that is sent of it has arrived.
bool Inbox::has_all(const InMessage& message) const {
  const bool asked_for_all =
      message.state == InState::kFilling || message.total <= unasked_bytes(message);
  return message.complete() && asked_for_all;
}

bool Inbox::has_all_of(MessageId id) const {
  if (!ids_.finished(id)) return false;
  if (begun_ == nullptr) return true;
  const auto begun = begun_->incomplete.find(id);
  return begun == begun_->incomplete.end() || has_all(*begun);
}

void Inbox::fail(Status status) {
  allowance_.end();
  while (begun_ != nullptr && !begun_->grants.empty()) {
    InMessage& message = as_whole(begun_->grants.front());
    begun_->grants.pop_front();
    if (message.state == InState::kOver) destroy(message);
  }
  while (begun_ != nullptr && !begun_->results.empty()) destroy(begun_->results.front());
  while (begun_ != nullptr && !begun_->early.empty()) destroy(*begun_->early.begin());
  if (begun_ != nullptr) begun_->current = nullptr;
  while (begun_ != nullptr && !begun_->incomplete.empty()) {
    InMessage& message = *begun_->incomplete.begin();
    begun_->incomplete.erase(begun_->incomplete.begin());
    const bool is_put = wire::class_of(message.kind) == wire::Class::kPut;
    Request* receive = message.receive;
    if (message.state == InState::kFilling && !is_put && receive != nullptr) {
      message.receive = nullptr;
      receive->finish_receive(status, peer_, message.tag, 0, message.total);
    }
    destroy(message);
  }
}

void Inbox::release_held(InMessage& message) {
  if (message.bytes == nullptr || !is_held(message)) return;
  shared_.memory.deallocate(message.bytes, message.room, 1);
  message.bytes = nullptr;
}

// All are over: it is as it was when it was taken.
void Inbox::give_back_begun() {
  begun_->current = nullptr;
  shared_.begun.give_back(begun_);
  begun_ = nullptr;
}

void Inbox::destroy(InMessage& message) {
  if (message.state == InState::kWaitingTurn) --begun_->waiting_turn;
  if (message.state == InState::kUnexpected) matcher_of(message.kind).remove(message);
  if (message.state == InState::kClaimed)
    begun_->claimed.erase(begun_->claimed.iterator_to(message));
  if (message.state == InState::kFilling) {
    --begun_->filling;
    if (wire::class_of(message.kind) == wire::Class::kAnswer) --begun_->answers;
    if (message.in_order.is_linked()) leave_region(message);
  }
  release_held(message);
  allowance_.give_back(message.charge);
  std::pmr::polymorphic_allocator<>(&shared_.memory).delete_object(&message);
  forget_kept();
}

void Inbox::destroy(ShortMessage& message) {
  switch (message.state) {
    case InState::kWaitingTurn:
      begun_->early.erase(begun_->early.iterator_to(message));
      message.end_early();
      --begun_->waiting_turn;
      break;
    case InState::kUnexpected:
      matcher_of(message.kind).remove(message);
      break;
    case InState::kClaimed:
      begun_->claimed.erase(begun_->claimed.iterator_to(message));
      break;
    case InState::kOver:
      if (message.in_order.is_linked()) {
        begun_->results.erase(begun_->results.iterator_to(message));
      }
      break;
    case InState::kFilling:
      break;  // it never is: all of it is here
  }
  allowance_.give_back(message.charge);
  shared_.shorts.destroy(&message);
  forget_kept();
}

void Inbox::destroy(Unexpected& message) {
  is_short(message) ? destroy(as_short(message)) : destroy(as_whole(message));
}

// One less; with the last the peer needs no Begun.
void Inbox::forget_kept() {
  if (--begun_->kept == 0) give_back_begun();
}

}  // namespace pullman::message
