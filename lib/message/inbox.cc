#include "message/inbox.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace pullman::message {

Inbox::Inbox(const InboxResources& shared, PeerId peer, std::uint64_t allowance,
             std::uint32_t eager_bytes)
    : shared_(shared),
      peer_(peer),
      allowance_(allowance),
      eager_bytes_(eager_bytes),
      done_(shared.bitmaps) {}

Inbox::~Inbox() {
  fail(Status::kClosed);
  while (InMessage* message = shared_.matcher.find(Want{peer_, 0, ~Tag{0}})) destroy(*message);
  PULLMAN_CHECK(empty());
}

void Inbox::start(MessageId first) {
  done_.start(first);
  next_turn_ = first;
}

Taken Inbox::handle_message(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  if (done_.finished(id)) return Taken::kRedundant;
  const std::uint64_t total = frame.data.size();
  if (total > eager_bytes_) return Taken::kRefused;
  if (id == next_turn_ && done_.contains(id) && allowance_.covers(charge_of(total, eager_bytes_))) {
    if (Request* receive = shared_.matcher.take_posted(peer_, frame.tag)) {
      return deliver_at_once(frame, *receive);
    }
  }
  InMessage* message = open(id, frame, total);
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
  done_.finish(next_turn_++);
  take_turns();
  return Taken::kNew;
}

Taken Inbox::handle_chunk(const wire::Frame& frame) {
  const MessageId id = expand(frame.id, next_turn_);
  if (done_.finished(id)) return Taken::kRedundant;
  const bool told_before = frame.total == 0;
  InMessage* message = told_before ? find_granted(id, frame) : open(id, frame, frame.total);
  return message == nullptr ? Taken::kRefused : place(*message, frame.offset, frame.data);
}

// The message with this id, if it has begun and is not over.
InMessage* Inbox::find(MessageId id) {
  if (current_ == nullptr || current_->id != id) {
    const auto found = incomplete_.find(id);
    current_ = found == incomplete_.end() ? nullptr : &*found;
  }
  return current_;
}

// The message of a chunk that does not say which: it has begun, and what lies beyond the eager
// bytes is wanted of those only that were granted (wire.md 2.12).
InMessage* Inbox::find_granted(MessageId id, const wire::Frame& frame) {
  return frame.offset >= eager_bytes_ ? find(id) : nullptr;
}

// The message a frame belongs to, begun if this is its first frame; null if the frame contradicts
// what came before, or lies beyond the id window or the allowance.
InMessage* Inbox::open(MessageId id, const wire::Frame& frame, std::uint64_t total) {
  if (InMessage* begun = find(id)) {
    return begun->total == total && begun->tag == frame.tag ? begun : nullptr;
  }
  const std::uint64_t charge = charge_of(total, eager_bytes_);
  if (!done_.contains(id) || id < next_turn_ || !allowance_.covers(charge)) return nullptr;
  auto* message =
      std::pmr::polymorphic_allocator<>(&shared_.memory).new_object<InMessage>(&shared_.memory);
  allowance_.charge(charge);
  message->charge = charge;
  message->id = id;
  message->peer = peer_;
  message->tag = frame.tag;
  message->total = total;
  message->wanted = std::min<std::uint64_t>(total, eager_bytes_);
  incomplete_.insert(*message);
  ++kept_;
  ++waiting_turn_;
  current_ = message;
  if (id == next_turn_) {
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
  const bool same = chunk.total == 0 || (chunk.tag == message.tag && chunk.total == message.total);
  if (message.state != InState::kFilling || !message.arrived.in_order() || !same ||
      begin != chunk.offset + chunk.data.size()) {
    return {};
  }
  const auto& op = message.receive->operation();
  const std::size_t at = static_cast<std::size_t>(std::min<std::uint64_t>(begin, op.size));
  return {message.wanted - begin, std::span(op.buffer, op.size).subspan(at)};
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
    const auto& op = message.receive->operation();
    if (offset >= op.size) return;
    std::memcpy(op.buffer + offset, data.data(),
                std::min<std::size_t>(data.size(), op.size - offset));
    return;
  }
  if (message.held == nullptr) {
    message.held_bytes = message.wanted;
    message.held = static_cast<std::byte*>(shared_.memory.allocate(message.held_bytes, 1));
  }
  std::memcpy(message.held + offset, data.data(), data.size());
}

// Lets every message match whose predecessors have all had their turn (DESIGN, principle 3).
void Inbox::let_turns_be_taken() {
  while (waiting_turn_ > 0) {
    const auto next = incomplete_.find(next_turn_);
    if (next == incomplete_.end()) return;
    ++next_turn_;
    InMessage& message = *next;
    take_turn(message);
    settle_if_complete(message);
  }
}

void Inbox::take_turn(InMessage& message) {
  --waiting_turn_;
  if (Request* receive = shared_.matcher.take_posted(peer_, message.tag))
    return give_to(message, *receive);
  message.state = InState::kUnexpected;
  ++shared_.counters.unexpected;
  shared_.matcher.add(message);
}

void Inbox::attach(InMessage& message, Request& receive) {
  shared_.matcher.remove(message);
  give_to(message, receive);
  settle_if_complete(message);
}

// Matched: what was held moves to the buffer, the charge for it goes back, and the sender of a long
// message learns how much of it is wanted.
void Inbox::give_to(InMessage& message, Request& receive) {
  const auto& op = receive.operation();
  message.state = InState::kFilling;
  message.receive = &receive;
  ++filling_;
  if (message.held != nullptr) {
    message.arrived.for_each([&](Range range) {
      write(message, range.begin, {message.held + range.begin, range.end - range.begin});
    });
    release_held(message);
  }
  allowance_.give_back(message.charge - kMessageCharge);
  message.charge = kMessageCharge;
  if (message.total > eager_bytes_) {
    message.wanted =
        std::max<std::uint64_t>(eager_bytes_, std::min<std::uint64_t>(message.total, op.size));
    grants_.push_back(message);
  }
}

// All bytes are here: the id is done. With a receive, so is the message. A long message that is not
// matched yet is never complete: the rest of it has not even been sent.
void Inbox::settle_if_complete(InMessage& message) {
  if (!message.complete()) return;
  const bool matched = message.state == InState::kFilling;
  if (!matched && message.total > eager_bytes_) return;
  if (!done_.finished(message.id)) done_.finish(message.id);
  if (message.state == InState::kWaitingTurn) return;
  if (message.by_id.is_linked()) {
    incomplete_.erase(incomplete_.iterator_to(message));
    if (current_ == &message) current_ = nullptr;
  }
  if (!matched) return;
  finish(*message.receive, message.tag, message.total);
  message.receive = nullptr;
  if (!message.to_grant.is_linked()) destroy(message);
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
    used += wire::put_grant(out + used, message.id, message.wanted);
    if (message.receive == nullptr) destroy(message);  // complete already
  }
  if (allowance_.worth_telling() && room - used >= wire::kAllowanceBytes) {
    used += wire::put_allowance(out + used, allowance_.tell());
  }
  return used;
}

void Inbox::fail(Status status) {
  while (!grants_.empty()) {
    InMessage& message = grants_.front();
    grants_.pop_front();
    if (message.receive == nullptr) destroy(message);
  }
  current_ = nullptr;
  auto at = incomplete_.begin();
  while (at != incomplete_.end()) {
    InMessage& message = *at;
    at = incomplete_.erase(at);
    if (Request* receive = message.receive) {
      message.receive = nullptr;
      receive->finish_receive(status, peer_, message.tag, 0, message.total);
    }
    destroy(message);
  }
}

void Inbox::release_held(InMessage& message) {
  if (message.held == nullptr) return;
  shared_.memory.deallocate(message.held, message.held_bytes, 1);
  message.held = nullptr;
}

void Inbox::destroy(InMessage& message) {
  if (message.state == InState::kWaitingTurn) --waiting_turn_;
  if (message.state == InState::kUnexpected) shared_.matcher.remove(message);
  if (message.state == InState::kFilling) --filling_;
  release_held(message);
  allowance_.give_back(message.charge);
  --kept_;
  std::pmr::polymorphic_allocator<>(&shared_.memory).delete_object(&message);
}

}  // namespace pullman::message
