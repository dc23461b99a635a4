// Multi-receive buffers (FI_MULTI_RECV), each of which takes many messages. One buffer of a lane
// takes messages at a time; receives posted after it wait here until it is used up, so that
// messages match in the order in which receives were posted. Posts nothing itself.
#pragma once

#include <cstddef>
#include <deque>

#include "ofi/calls.h"
#include "ofi/owned_call.h"

namespace pullman::ofi {

// Keeps buffers that endpoints use.
class MultiReceiveOwner {
 public:
  // An endpoint has used up one of its buffers.
  virtual void note_used_up() = 0;

 protected:
  ~MultiReceiveOwner() = default;
};

// The unused part of a buffer that takes messages.
struct MultiReceiveBuffer {
  MultiReceiveBuffer() = default;
  MultiReceiveBuffer(const ReceiveCall& posted, std::size_t least);

  // A message takes `bytes` bytes. If not `usable` it failed, and no other may follow it.
  void use(std::size_t bytes, bool usable);
  void notify_owner() const {
    if (owner != nullptr) owner->note_used_up();
  }

  ReceiveCall call;  // without its segments
  std::byte* at = nullptr;
  std::size_t left = 0;
  std::size_t min_room = 1;  // FI_OPT_MIN_MULTI_RECV: used up when less is left
  bool used_up = false;
  std::size_t in_flight = 0;           // messages that are arriving in it
  bool returned = false;               // a completion has told the application that it is used up
  MultiReceiveOwner* owner = nullptr;  // null: the lane that it was posted to
};

// The buffer of a lane that takes messages, and the receives behind it.
class MultiReceiveQueue {
 public:
  bool active() const { return active_; }
  MultiReceiveBuffer& buffer() { return buffer_; }
  void begin(const ReceiveCall& call);
  void end() { active_ = false; }

  bool any_waiting() const { return !waiting_.empty(); }
  void append(const ReceiveCall& call) { waiting_.push_back({OwnedCall(call), min_room_}); }
  const ReceiveCall& first_waiting() const { return waiting_.front().owned.call(); }
  // The first waiting receive is a buffer: makes it the one that takes messages.
  void begin_first_waiting() {
    buffer_ = MultiReceiveBuffer(first_waiting(), waiting_.front().min_room);
    active_ = true;
  }
  void drop_first_waiting() { waiting_.pop_front(); }
  // Takes back the first waiting receive with that context; returns false if there is none.
  bool withdraw(void* context, ReceiveCall& out);
  // Takes back all waiting receives, and lets no further message begin.
  void close();

  std::size_t min_room() const { return min_room_; }
  void set_min_room(std::size_t bytes) { min_room_ = bytes; }

 private:
  struct Waiting {
    OwnedCall<ReceiveCall> owned;
    std::size_t min_room;  // the value when it was posted
  };

  bool active_ = false;
  MultiReceiveBuffer buffer_;
  std::deque<Waiting> waiting_;
  std::size_t min_room_ = 64;
};

}  // namespace pullman::ofi
