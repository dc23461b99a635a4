#include "pullman/multi_receive.h"

#include <algorithm>

#include "base/check.h"

namespace pullman {

MultiReceive::MultiReceive(std::size_t most, std::size_t least_room)
    : most_(std::max<std::size_t>(most, 1)),
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

std::optional<MultiReceive::Message> MultiReceive::take() {
  if (!has_message()) return std::nullopt;
  Request& part = parts_[in_order_[taken_++]];
  return Message{.status = part.status(),
                 .source = part.source(),
                 .tag = part.tag(),
                 .bytes = {part.operation().buffer, part.length()},
                 .length = part.message_length(),
                 .immediate = part.immediate()};
}

void MultiReceive::begin(std::span<std::byte> buffer) {
  PULLMAN_DCHECK(idle());
  room_ = buffer;
  matched_ = taken_ = 0;
  complete_.store(0, std::memory_order_relaxed);
  status_.store(Status::kPending, std::memory_order_relaxed);
}

Request& MultiReceive::take_part(std::uint64_t bytes) {
  PULLMAN_DCHECK(!used_up());
  Request& part = parts_[matched_++];
  const auto& asked = posted_.operation();
  part.begin(detail::Operation::Kind::kReceive, asked.peer, asked.tag);
  auto& op = part.operation();
  op.buffer = room_.data();
  op.size = room_.size();
  room_ = room_.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, room_.size())));
  return part;
}

void MultiReceive::note_complete(Request& part) {
  auto& whole = *static_cast<MultiReceive*>(part.user);
  const std::size_t place = whole.complete_.load(std::memory_order_relaxed);
  whole.in_order_[place] = static_cast<std::uint32_t>(&part - whole.parts_.get());
  whole.complete_.store(place + 1, std::memory_order_release);
  whole.settle(true);
}

void MultiReceive::note_end(Request& posted) {
  of(posted).settle(false);
}

void MultiReceive::settle(bool news) {
  auto* const tell = on_news;
  const bool ends = posted_.done() && complete_.load(std::memory_order_relaxed) == matched_;
  // From here on another thread may take it to be its own again.
  if (ends) status_.store(posted_.status(), std::memory_order_release);
  if (tell != nullptr && (news || ends)) tell(*this);
}

}  // namespace pullman
