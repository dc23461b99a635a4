// What the library remembers of one buffer for many messages (pullman/multi_receive.h): the receive
// that is posted for it, and a request for each message that matches.
//
// Does not know how messages match or arrive. Threads: as the context's, behind its lock; take()
// comes from the program's thread.
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
  // Of what is posted for it, or of one of its parts.
  static State& of(Request& mine) { return *static_cast<State*>(mine.user); }

  // What is posted for it. begin(): it has the buffer, and what it asks for is still to be said.
  Request& posted() { return posted_; }
  void begin(std::span<std::byte> buffer);
  // The receive of a message with so many bytes that matches; it is not used up.
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
  std::unique_ptr<std::uint32_t[]> in_order_;  // of completion: which parts are
  std::span<std::byte> room_;                  // what is left of the buffer
  std::size_t matched_ = 0;
};

}  // namespace pullman
