// One buffer that receives many messages. Context::receive() posts it.
//
// The messages lie one behind the other, without gaps, in the order in which they matched. The
// receive keeps its place among the posted receives until fewer than `least_room` bytes are left,
// or `most` messages have matched. It is then used up, and later messages match other receives. A
// message longer than what is left is truncated, as in any receive. Ownership: the caller keeps it
// and the buffer alive, unmoved, until done(). Only the constructor allocates. A receive that is
// used up and emptied by take() can be posted again. Threads: as the context it was given to; only
// one thread at a time calls take(). Errors: the constructor throws std::bad_alloc; status() and
// each message say how they ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

// A buffer for many messages, and what became of it.
class __attribute__((visibility("default"))) MultiReceive {
 public:
  // A message that is complete.
  struct Message {
    Status status = Status::kOk;  // kOk, kTruncated, or why it is not complete
    PeerId source;                // who sent it
    Tag tag = 0;                  // with which tag
    std::span<std::byte> bytes;   // where it is in the buffer
    std::uint64_t length = 0;     // as it was sent: more than bytes.size() if it was truncated
    std::optional<std::uint64_t> immediate;  // the immediate data, if any
  };

  // `most` messages use it up, at least one; each takes the memory of a Request.
  explicit MultiReceive(std::size_t most, std::size_t least_room = 1);
  // Aborts unless done(), as ~Request() does.
  ~MultiReceive();
  MultiReceive(const MultiReceive&) = delete;
  MultiReceive& operator=(const MultiReceive&) = delete;

  // Returns the next complete message. Messages are returned in the order in which they complete,
  // which need not be their order in the buffer.
  std::optional<Message> take();
  // Returns true if a message can be taken.
  bool has_message() const { return taken_ < complete_.load(std::memory_order_acquire); }

  // Returns true if no more messages will match and all that did are complete. Some may be left to
  // take().
  bool done() const { return status() != Status::kPending; }
  // Returns kPending until done; then kOk if it was used up, kCancelled, or why it ended.
  Status status() const { return status_.load(std::memory_order_acquire); }
  // Returns true if it may be posted (again): it is done, and every message was taken.
  bool idle() const { return done() && !has_message(); }

  // For the program: the library never touches it.
  void* user = nullptr;
  // Called whenever a message is complete and when the receive becomes done. What it may do is as
  // for Request::on_done.
  void (*on_news)(MultiReceive& receive) = nullptr;

  // The library's state of the receive. Defined in the library only.
  class State;

 private:
  std::size_t taken_ = 0;
  std::atomic<std::size_t> complete_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // written last when it becomes done
  std::unique_ptr<State> state_;
};

}  // namespace pullman
