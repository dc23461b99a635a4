// A receive that takes many messages: its buffer is given away piece by piece, and it stays posted
// until too little is left. It is done when all that were given a piece have landed.
//
// Knows the receive's own notes and nothing else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "pullman/request.h"

namespace pullman::message {

inline void begin_many(detail::Operation& op, std::size_t least_room) {
  op.special.is_special = op.special.takes_many = true;
  op.sent = 0;
  op.granted = least_room;
  op.packets = 0;
  op.result = Status::kOk;
}

inline std::size_t room_left(const detail::Operation& op) {
  return op.size - static_cast<std::size_t>(op.sent);
}

// One that is longer than the whole buffer is cut to it; any other one fits or goes elsewhere.
inline bool has_room(const detail::Operation& op, std::uint64_t bytes) {
  return op.sent == 0 || bytes <= room_left(op);
}

inline bool takes_more(const detail::Operation& op) {
  return room_left(op) >= op.granted;
}

inline std::span<std::byte> give_away(detail::Operation& op, std::uint64_t bytes) {
  PULLMAN_DCHECK(has_room(op, bytes));
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, room_left(op)));
  const std::span<std::byte> place(op.buffer + op.sent, length);
  op.sent += length;
  ++op.packets;
  return place;
}

// It is not posted any more: done, if nothing is still to land.
inline void end_if_landed(detail::Operation& op) {
  if (op.packets == 0 && !op.queue.is_linked()) {
    op.request->finish(op.result, static_cast<std::size_t>(op.sent));
  }
}

// It takes no more, and is not posted any more. The receive ends with `why` when all have landed.
inline void end_receive(detail::Operation& op, Status why) {
  if (!op.special.takes_many) return op.request->finish(why, 0);
  op.result = why;
  end_if_landed(op);
}

// What was given a piece is there, or will never be.
inline void land(detail::Operation& op, const Landed& message) {
  PULLMAN_DCHECK(op.packets > 0);
  --op.packets;
  op.request->on_message(*op.request, message);
  end_if_landed(op);
}

}  // namespace pullman::message
