// The library's state of one buffer for many messages (pullman/multi_receive.h): the receive that
// is posted for it, and a request for each message that matches.
//
// Does not know how messages match or arrive. Threads: runs behind the context's lock, except
// take(), which the program's thread calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pullman/multi_receive.h"
#include "pullman/request.h"

namespace pullman {

class MultiReceive::State {
 public:
  State(MultiReceive& whole, std::size_t most, std::size_t least_room);

  static State& of(MultiReceive& receive) { return *receive.state_; }
  // `mine` is the receive that is posted, or one of the parts.
  static State& of(Request& mine) { return *static_cast<State*>(mine.user); }

  // Returns the posted receive. After begin() it has the buffer; the caller still sets the source,
  // tag and space to match.
  Request& posted() { return posted_; }
  void begin(std::span<std::byte> buffer);
  // Returns the receive for a matching message of `bytes` bytes. Must not be used_up().
  Request& take_part(std::uint64_t bytes);
  bool used_up() const { return matched_ == most_ || room_.size() < least_room_; }
  // The next complete message.
  std::optional<Message> take();

 private:
  static void note_complete(Request& part);
  static void note_end(Request& posted);
  void settle(bool news);

  MultiReceive& whole_;
  const std::size_t most_;
  const std::size_t least_room_;
  Request posted_;
  std::unique_ptr<Request[]> parts_;           // one for each message, in the order of matching
  std::unique_ptr<std::uint32_t[]> in_order_;  // in the order of completion: indices of parts
  std::span<std::byte> room_;                  // what is left of the buffer
  std::size_t matched_ = 0;
};

}  // namespace pullman
