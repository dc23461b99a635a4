// Multi-receive buffers (FI_MULTI_RECV): many messages into one buffer, one behind the other. One
// buffer takes messages at a time; receives posted behind it wait here until it is used up, so that
// messages match in the order receives were posted. Does not post anything itself.
#pragma once

#include <cstddef>
#include <deque>

#include "ofi/calls.h"
#include "ofi/owned_call.h"

namespace pullman::ofi {

// What is left of a buffer that takes messages.
struct MultiReceiveBuffer {
  MultiReceiveBuffer() = default;
  MultiReceiveBuffer(const ReceiveCall& posted, std::size_t least);

  // So many bytes are a message's; without `usable`, what failed: it may not be used any further.
  void use(std::size_t bytes, bool usable);

  ReceiveCall call;  // without its list
  std::byte* at = nullptr;
  std::size_t left = 0;
  std::size_t min_room = 1;  // with less it is used up
  bool used_up = false;
  std::size_t in_flight = 0;  // messages, into it
  bool told = false;          // the application has it back
};

class MultiReceiveQueue {
 public:
  bool active() const { return active_; }
  MultiReceiveBuffer& buffer() { return buffer_; }
  void begin(const ReceiveCall& call);
  void end() { active_ = false; }

  bool any_waiting() const { return !waiting_.empty(); }
  void wait(const ReceiveCall& call) { waiting_.push_back({OwnedCall(call), min_room_}); }
  const ReceiveCall& first_waiting() const { return waiting_.front().owned.call(); }
  // It is a buffer, and now takes messages.
  void begin_first_waiting() {
    buffer_ = MultiReceiveBuffer(first_waiting(), waiting_.front().min_room);
    active_ = true;
  }
  void drop_first_waiting() { waiting_.pop_front(); }
  // Takes back the first of that context; false if there is none.
  bool withdraw(void* context, ReceiveCall& out);
  void withdraw_all() { waiting_.clear(); }

  std::size_t min_room() const { return min_room_; }
  void set_min_room(std::size_t bytes) { min_room_ = bytes; }

 private:
  bool active_ = false;
  MultiReceiveBuffer buffer_;
  struct Waiting {
    OwnedCall<ReceiveCall> owned;
    std::size_t min_room;  // when it was posted
  };
  std::deque<Waiting> waiting_;
  std::size_t min_room_ = 64;  // FI_OPT_MIN_MULTI_RECV
};

}  // namespace pullman::ofi
