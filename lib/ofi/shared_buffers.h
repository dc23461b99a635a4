// Multi-receive buffers (FI_MULTI_RECV): many messages into one buffer, one behind the other. One
// buffer takes messages at a time; receives posted behind it wait here until it is used up, so that
// messages match in the order receives were posted. Does not post anything itself.
#pragma once

#include <cstddef>
#include <deque>

#include "ofi/calls.h"
#include "ofi/kept_call.h"

namespace pullman::ofi {

// What is left of the buffer that takes messages now.
struct SharedBuffer {
  ReceiveCall call;
  std::byte* at = nullptr;
  std::size_t left = 0;
};

class SharedBuffers {
 public:
  bool active() const { return active_; }
  SharedBuffer& buffer() { return buffer_; }
  void begin(const ReceiveCall& call);
  void end() { active_ = false; }

  // So many bytes were received. True if too few are left for another message.
  bool use(std::size_t bytes);

  // The current one has to be posted again, or the next.
  bool refill_due() const { return refill_due_; }
  void want_refill(bool wanted) { refill_due_ = wanted; }

  bool any_waiting() const { return !waiting_.empty(); }
  void wait(const ReceiveCall& call) { waiting_.emplace_back(call); }
  const ReceiveCall& first_waiting() const { return waiting_.front().call(); }
  void drop_first_waiting() { waiting_.pop_front(); }
  // Takes back the first of that context; false if there is none.
  bool withdraw(void* context, ReceiveCall& out);

  std::size_t least_room() const { return least_room_; }
  void set_least_room(std::size_t bytes) { least_room_ = bytes; }

 private:
  bool active_ = false;
  bool refill_due_ = false;
  SharedBuffer buffer_;
  std::deque<Kept<ReceiveCall>> waiting_;
  std::size_t least_room_ = 64;  // FI_OPT_MIN_MULTI_RECV
};

}  // namespace pullman::ofi
