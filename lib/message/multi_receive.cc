#include "message/multi_receive.h"

#include <algorithm>

#include "base/check.h"
#include "message/operation.h"

namespace pullman {

MultiReceive::MultiReceive(std::size_t most, std::size_t least_room)
    : state_(std::make_unique<State>(*this, std::max<std::size_t>(most, 1), least_room)) {}

MultiReceive::~MultiReceive() = default;

std::optional<MultiReceive::Message> MultiReceive::take() {
  return state_->take();
}

MultiReceive::State::State(MultiReceive& whole, std::size_t most, std::size_t least_room)
    : whole_(whole),
      most_(most),
      least_room_(least_room),
      parts_(std::make_unique<Request[]>(most_)),
      in_order_(std::make_unique<std::uint32_t[]>(most_)) {
  posted_.user = this;
  posted_.on_done = note_end;
  for (std::size_t i = 0; i < most_; ++i) {
    parts_[i].user = this;
    parts_[i].on_done = note_complete;
  }
}

std::optional<MultiReceive::Message> MultiReceive::State::take() {
  if (!whole_.has_message()) return std::nullopt;
  Request& part = parts_[in_order_[whole_.taken_++]];
  return Message{.status = part.status(),
                 .source = part.source(),
                 .tag = part.tag(),
                 .bytes = {Request::Operation::of(part).buffer, part.length()},
                 .length = part.message_length(),
                 .immediate = part.immediate()};
}

void MultiReceive::State::begin(std::span<std::byte> buffer) {
  PULLMAN_DCHECK(whole_.idle());
  room_ = buffer;
  matched_ = whole_.taken_ = 0;
  whole_.complete_.store(0, std::memory_order_relaxed);
  whole_.status_.store(Status::kPending, std::memory_order_relaxed);
}

Request& MultiReceive::State::take_part(std::uint64_t bytes) {
  PULLMAN_DCHECK(!used_up());
  Request& part = parts_[matched_++];
  const auto& asked = Request::Operation::of(posted_);
  auto& op = Request::Operation::of(part);
  op.begin(Request::Operation::Kind::kReceive, asked.peer, asked.tag);
  op.buffer = room_.data();
  op.size = room_.size();
  room_ = room_.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, room_.size())));
  return part;
}

void MultiReceive::State::note_complete(Request& part) {
  State& state = of(part);
  auto& complete = state.whole_.complete_;
  const std::size_t place = complete.load(std::memory_order_relaxed);
  state.in_order_[place] = static_cast<std::uint32_t>(&part - state.parts_.get());
  complete.store(place + 1, std::memory_order_release);
  state.settle(true);
}

void MultiReceive::State::note_end(Request& posted) {
  of(posted).settle(false);
}

void MultiReceive::State::settle(bool news) {
  MultiReceive& mine = whole_;
  auto* const tell = mine.on_news;
  const bool ends = posted_.done() && mine.complete_.load(std::memory_order_relaxed) == matched_;
  // From this store on another thread may reuse or destroy it.
  if (ends) mine.status_.store(posted_.status(), std::memory_order_release);
  if (tell != nullptr && (news || ends)) tell(mine);
}

}  // namespace pullman
