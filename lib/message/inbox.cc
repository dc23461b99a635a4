#include "message/inbox.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "message/many.h"
#include "message/parcel.h"

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

Inbox::Inbox(const InboxResources& shared, PeerId peer, const InboxShares& shares,
             std::uint32_t eager_bytes, OneSided* one_sided)
    : shared_(shared),
      peer_(peer),
      allowance_(shares.bytes),
      envelopes_(shares.envelopes, shared.envelopes),
      eager_bytes_(eager_bytes),
      begun_(shared.bitmaps),
      one_sided_(one_sided) {}

Inbox::~Inbox() {
  fail(Status::kClosed);
  for (std::uint8_t space = 0; space < (shared_.more == nullptr ? 1 : kSpaces); ++space) {
    Matcher& matcher = matcher_of(space);
    while (InMessage* message = matcher.find(Want{peer_, 0, ~Tag{0}})) destroy(*message);
  }
  while (!claimed_.empty()) destroy(claimed_.front());
  PULLMAN_CHECK(empty());
}

void Inbox::start(MessageId first) {
  begun_.start(first);
  next_turn_ = first;
}

Taken Inbox::handle_message(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  const std::uint64_t total = frame.data.size();
  if (begun_.finished(id)) return total == 0 ? Taken::kRedundant : add_to(id, frame, total);
  if (total > eager_bytes_) return Taken::kRefused;
  if (id == next_turn_ && begun_.contains(id) &&
      allowance_.covers(charge_of(total, eager_bytes_))) {
    if (frame.kind != 0) {
      if (may_be_delivered_at_once(frame.kind) && knows(frame.kind)) {
        if (Request* receive = take_receive(frame.kind, frame.tag, total)) {
          return deliver_special(frame, *receive);
        }
      }
    } else if (Request* receive = take_receive(0, frame.tag, total)) {
      if (receive->operation().special.is_special) return deliver_special(frame, *receive);
      return deliver_at_once(frame, *receive);
    }
  }
  InMessage* message = open(id, frame, total);
  return message == nullptr ? Taken::kRefused : place(*message, 0, frame.data);
}

// What a peer announces costs it no more memory than is remembered of it (wire.md 4.12).
Taken Inbox::handle_envelope(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  if (begun_.finished(id)) return Taken::kRedundant;
  InMessage* message = open(id, frame, frame.total);
  return message == nullptr ? Taken::kRefused : place(*message, 0, frame.data);
}

// The common case: in order, whole and expected. One copy, nothing remembered.
Taken Inbox::deliver_at_once(const wire::Frame& frame, Request& receive) {
  const auto& op = receive.operation();
  const std::uint64_t charge = charge_of(frame.data.size(), eager_bytes_);
  allowance_.charge(charge);
  allowance_.give_back(charge);
  if (const std::size_t length = std::min(op.size, frame.data.size()); length > 0) {
    std::memcpy(op.buffer, frame.data.data(), length);
  }
  finish(receive, frame.tag, frame.data.size());
  begun_.finish(next_turn_++);
  take_turns();
  return Taken::kNew;
}

// The same with a lead, or into several places.
Taken Inbox::deliver_special(const wire::Frame& frame, Request& receive) {
  const std::uint64_t charge = charge_of(frame.data.size(), eager_bytes_);
  allowance_.charge(charge);
  allowance_.give_back(charge);
  const auto data = frame.data.subspan(wire::lead_bytes(frame.kind));
  std::optional<std::uint64_t> immediate;
  if (wire::has_immediate(frame.kind)) immediate = wire::read_immediate(frame.data.data());
  auto& op = receive.operation();
  if (op.special.takes_many) {
    const auto place = give_piece(receive, frame.kind, data.size());
    std::copy_n(data.begin(), place.size(), place.begin());
    land(receive, place, {.message_length = data.size(), .tag = frame.tag, .immediate = immediate});
  } else {
    const std::size_t length = std::min(op.size, data.size());
    if (op.special.piece_count != 0) {
      scatter(op, 0, data);
    } else if (length > 0) {
      std::memcpy(op.buffer, data.data(), length);
    }
    if (immediate) receive.take_immediate(*immediate);
    finish(receive, frame.tag, data.size());
  }
  begun_.finish(next_turn_++);
  take_turns();
  return Taken::kNew;
}

// The receive that a message goes to, if one is posted. One that takes many and has no room for it
// takes no more.
Request* Inbox::take_receive(std::uint8_t kind, Tag tag, std::uint64_t bytes) {
  Matcher& matcher = matcher_of(kind);
  Request* receive = matcher.take_posted(peer_, tag);
  while (receive != nullptr && receive->operation().special.takes_many &&
         !has_room(receive->operation(), bytes)) {
    matcher.remove(*receive);
    end_receive(receive->operation(), Status::kOk);
    receive = matcher.take_posted(peer_, tag);
  }
  return receive;
}

// Of the buffer of one that takes many.
std::span<std::byte> Inbox::give_piece(Request& receive, std::uint8_t kind, std::uint64_t bytes) {
  const auto place = give_away(receive.operation(), bytes);
  if (!takes_more(receive.operation())) matcher_of(kind).remove(receive);
  return place;
}

// `message` says what does not follow from where it landed.
void Inbox::land(Request& receive, std::span<const std::byte> place, Landed message) {
  const bool cut = message.message_length > place.size();
  if (message.status == Status::kOk) {
    message.status = cut ? Status::kTruncated : Status::kOk;
    message.length = place.size();
    ++shared_.counters.messages;
    shared_.counters.bytes += message.message_length;
  }
  message.offset = static_cast<std::size_t>(place.data() - receive.operation().buffer);
  message.source = peer_;
  message::land(receive.operation(), message);
}

// A message of a space that is not there, or one for regions that are not, is from nobody who means
// well; nor is an answer to nothing that was asked.
bool Inbox::knows(std::uint8_t kind) const {
  if (wire::class_of(kind) != wire::Class::kMessage) {
    return one_sided_ != nullptr && shared_.regions != nullptr;
  }
  return wire::space_of(kind) == 0 || shared_.more != nullptr;
}

Taken Inbox::handle_chunk(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  const bool told_before = frame.total == 0;
  if (begun_.finished(id)) return add_to(id, frame, frame.total);
  InMessage* message = told_before ? nullptr : open(id, frame, frame.total);
  return message == nullptr ? Taken::kRefused : place(*message, frame.offset, frame.data);
}

// Bytes of a message that has begun: it is known, or it is over.
Taken Inbox::add_to(MessageId id, const wire::Frame& frame, std::uint64_t total) {
  InMessage* message = find(id);
  if (message == nullptr) return Taken::kRedundant;
  const bool same = total == 0 ? may_tell_no_total(*message, frame)
                               : message->total == total && message->tag == frame.tag &&
                                     message->kind == frame.kind;
  return same ? place(*message, frame.offset, frame.data) : Taken::kRefused;
}

// The message with this id, which has begun, if it is not over.
InMessage* Inbox::find(MessageId id) {
  if (current_ == nullptr || current_->id != id) {
    const auto found = incomplete_.find(id);
    current_ = found == incomplete_.end() ? nullptr : &*found;
  }
  return current_;
}

// What lies beyond the eager bytes, or an envelope, is wanted of those messages only that were
// granted (wire.md 2.12).
bool Inbox::may_tell_no_total(const InMessage& message, const wire::Frame& chunk) const {
  return message.has_envelope || chunk.offset >= eager_bytes_;
}

// The message that this frame begins; null if it lies beyond the id window or the allowance.
InMessage* Inbox::open(MessageId id, const wire::Frame& frame, std::uint64_t total) {
  const bool is_envelope = frame.type == wire::FrameType::kEnvelope;
  const std::uint64_t charge = charge_of(frame.kind, total, is_envelope ? 0 : eager_bytes_);
  AllowanceGranted& allowance = is_envelope ? envelopes_ : allowance_;
  if (!begun_.contains(id) || !allowance.covers(charge)) return nullptr;
  if (frame.kind != 0 && !may_begin(frame, total)) return nullptr;
  auto* message =
      std::pmr::polymorphic_allocator<>(&shared_.memory).new_object<InMessage>(&shared_.memory);
  begun_.finish(id);
  allowance.charge(charge);
  message->charge = static_cast<std::uint32_t>(charge);
  message->has_envelope = is_envelope;
  message->kind = frame.kind;
  message->id = id;
  message->peer = peer_;
  message->tag = frame.tag;
  message->total = total;
  const bool is_atomic = wire::class_of(frame.kind) == wire::Class::kAtomic;
  message->wanted = is_envelope ? frame.data.size()
                    : is_atomic ? total
                                : std::min<std::uint64_t>(total, eager_bytes_);
  incomplete_.insert(*message);
  ++kept_;
  ++waiting_turn_;
  current_ = message;
  if (is_atomic) want(*message, total);  // all of it is needed before its turn
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
    const auto added = message.arrived.add({offset, offset + data.size()}, message.most_ranges());
    if (added == RangeSet::Added::kRefused) return Taken::kRefused;
    if (added == RangeSet::Added::kRedundant) return Taken::kRedundant;
    write(message, offset, data);
  }
  settle_if_complete(message);
  take_turns();
  return Taken::kNew;
}

Inbox::InOrder Inbox::in_order_behind(const wire::Frame& chunk) const {
  if (current_ == nullptr || current_->id != expand(chunk.id, next_turn_)) return {};
  const InMessage& message = *current_;
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
  InMessage& message = *current_;
  const std::uint64_t begin = message.arrived.prefix();
  PULLMAN_CHECK(message.arrived.in_order() && begin + bytes.taken() <= message.wanted);
  message.arrived.add({begin, begin + bytes.taken()}, message.most_ranges());
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
  if (message.bytes == nullptr) {
    message.room = message.wanted;
    message.bytes = static_cast<std::byte*>(shared_.memory.allocate(message.room, 1));
  }
  std::memcpy(message.bytes + offset, data.data(), data.size());
}

// Lets every message match whose predecessors have all had their turn (DESIGN, principle 3).
void Inbox::let_turns_be_taken() {
  while (waiting_turn_ > 0) {
    const auto next = incomplete_.find(next_turn_);
    if (next == incomplete_.end() || !may_take_turn(*next)) return;
    ++next_turn_;
    InMessage& message = *next;
    take_turn(message);
    settle_if_complete(message);
  }
}

void Inbox::take_turn(InMessage& message) {
  --waiting_turn_;
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
  const std::uint64_t bytes = message.total - wire::lead_bytes(message.kind);
  if (Request* receive = take_receive(message.kind, message.tag, bytes)) {
    return give_to(message, *receive);
  }
  message.state = InState::kUnexpected;
  ++shared_.counters.unexpected;
  matcher_of(message.kind).add(message);
}

void Inbox::attach(InMessage& message, Request& receive) {
  matcher_of(message.kind).remove(message);
  give_to(message, receive);
  settle_if_complete(message);
}

void Inbox::claim(InMessage& message) {
  matcher_of(message.kind).remove(message);
  message.state = InState::kClaimed;
  claimed_.push_back(message);
}

InMessage* Inbox::find_claimed(MessageId id) {
  for (InMessage& message : claimed_) {
    if (message.id == id) return &message;
  }
  return nullptr;
}

void Inbox::attach_claimed(InMessage& message, Request& receive) {
  claimed_.erase(claimed_.iterator_to(message));
  give_to(message, receive);
  settle_if_complete(message);
}

void Inbox::discard(InMessage& message) {
  claimed_.erase(claimed_.iterator_to(message));
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
  if (op.special.takes_many) {
    const auto place =
        give_piece(receive, message.kind, message.total - wire::lead_bytes(message.kind));
    fill(message, place.data(), place.size());
    return want(message, place.size());
  }
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
  ++filling_;
  if (held != nullptr) {
    message.arrived.for_each([&](Range range) {
      write(message, range.begin, {held + range.begin, range.end - range.begin});
    });
    shared_.memory.deallocate(held, held_bytes, 1);
  }
  const auto kept = static_cast<std::uint32_t>(kMessageCharge + charge_behind(message.kind));
  if (message.charge <= kept) return;  // an answer has none
  allowance_of(message).give_back(message.charge - kept);
  message.charge = kept;
}

// So many of the caller's bytes are of use: the sender of a long message is told.
void Inbox::want(InMessage& message, std::uint64_t bytes) {
  if (message.wanted == message.total) return;  // that is on its way
  const std::uint64_t useful =
      std::min<std::uint64_t>(message.total, bytes + wire::lead_bytes(message.kind));
  message.wanted = std::max(message.wanted, useful);
  grants_.push_back(message);
}

// All bytes are here. With a receive the message is done. A long message that is not matched yet is
// never complete, nor is an envelope's: the rest of it has not even been sent.
void Inbox::settle_if_complete(InMessage& message) {
  if (!message.complete()) return;
  const bool matched = message.state == InState::kFilling;
  if (!matched && message.wanted < message.total) return;
  if (message.state == InState::kWaitingTurn) return;
  if (message.by_id.is_linked()) {
    incomplete_.erase(incomplete_.iterator_to(message));
    if (current_ == &message) current_ = nullptr;
  }
  if (!matched) return;
  end(message);
}

// All is done, but for a frame that may be due.
void Inbox::end(InMessage& message) {
  message.state = InState::kOver;
  --filling_;
  if (wire::class_of(message.kind) == wire::Class::kAnswer) --answers_;
  if (wire::class_of(message.kind) == wire::Class::kPut) {
    end_put(message);
  } else if (wire::class_of(message.kind) == wire::Class::kAnswer) {
    if (message.receive != nullptr) message.receive->finish(Status::kOk, message.room);
  } else if (Request* receive = message.receive) {
    finish_receive(message, *receive);
  }
  const bool tells = message.wants_result && !failed_;
  if (tells && !message.to_grant.is_linked()) grants_.push_back(message);
  if (!message.to_grant.is_linked()) destroy(message);
}

void Inbox::finish_receive(const InMessage& message, Request& receive) {
  const std::uint64_t total = message.total - wire::lead_bytes(message.kind);
  std::optional<std::uint64_t> immediate;
  if (wire::has_immediate(message.kind)) immediate = wire::read_immediate(message.lead_bytes());
  if (receive.operation().special.takes_many) {
    return land(receive, {message.bytes, message.room},
                {.message_length = total, .tag = message.tag, .immediate = immediate});
  }
  if (immediate) receive.take_immediate(*immediate);
  finish(receive, message.tag, total);
}

void Inbox::finish(Request& receive, Tag tag, std::uint64_t total) {
  const std::size_t size = receive.operation().size;
  ++shared_.counters.messages;
  shared_.counters.bytes += total;
  receive.finish_receive(total > size ? Status::kTruncated : Status::kOk, peer_, tag,
                         static_cast<std::size_t>(std::min<std::uint64_t>(total, size)), total);
}

std::size_t Inbox::write_frames(std::byte* out, std::size_t room) {
  std::size_t used = 0;
  while (!grants_.empty() && room - used >= wire::kGrantBytes) {
    InMessage& message = grants_.front();
    grants_.pop_front();
    if (message.state == InState::kOver && message.wants_result) {
      used += wire::put_result(out + used, message.id, result_of(message));
    } else {
      used += wire::put_grant(out + used, message.id, message.wanted);
    }
    if (message.state == InState::kOver) destroy(message);
  }
  if (tells_allowance() && room - used >= wire::kAllowanceBytes) {
    used += wire::put_allowance(out + used, allowance_.tell(), envelopes_.tell());
  }
  return used;
}

void Inbox::fail(Status status) {
  failed_ = true;
  envelopes_.end();
  while (!grants_.empty()) {
    InMessage& message = grants_.front();
    grants_.pop_front();
    if (message.state == InState::kOver) destroy(message);
  }
  current_ = nullptr;
  auto at = incomplete_.begin();
  while (at != incomplete_.end()) {
    InMessage& message = *at;
    at = incomplete_.erase(at);
    const bool is_put = wire::class_of(message.kind) == wire::Class::kPut;
    Request* receive = message.receive;
    if (message.state == InState::kFilling && !is_put && receive != nullptr) {
      message.receive = nullptr;
      if (receive->operation().special.takes_many) {
        land(*receive, {message.bytes, 0},
             {.status = status, .message_length = message.total, .tag = message.tag});
      } else {
        receive->finish_receive(status, peer_, message.tag, 0, message.total);
      }
    }
    destroy(message);
  }
}

void Inbox::release_held(InMessage& message) {
  if (message.bytes == nullptr || !is_held(message)) return;
  shared_.memory.deallocate(message.bytes, message.room, 1);
  message.bytes = nullptr;
}

void Inbox::destroy(InMessage& message) {
  if (message.state == InState::kWaitingTurn) --waiting_turn_;
  if (message.state == InState::kUnexpected) matcher_of(message.kind).remove(message);
  if (message.state == InState::kClaimed) claimed_.erase(claimed_.iterator_to(message));
  if (message.state == InState::kFilling) {
    --filling_;
    if (wire::class_of(message.kind) == wire::Class::kAnswer) --answers_;
    if (message.in_order.is_linked()) leave_region(message);
  }
  release_held(message);
  allowance_of(message).give_back(message.charge);
  --kept_;
  std::pmr::polymorphic_allocator<>(&shared_.memory).delete_object(&message);
}

}  // namespace pullman::message
