// One buffer for many messages: Context::receive() with one of these posts it.
//
// The messages lie one behind the other, without gaps, in the order in which they matched. It keeps
// its place among the receives that are posted until fewer than `least_room` bytes are left, or as
// many messages have matched as it has notes for: then it is used up, and the next one has its
// turn. A message longer than what is left is cut, as in any receive. Ownership: the caller keeps
// it and the buffer alive, unmoved, until done(). It allocates when it is made, and never again;
// used up and emptied by take() it can be posted again. Threads: as the context it was given to;
// one at a time takes. Errors: the constructor throws std::bad_alloc; status() and each message say
// how they ended.
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

class __attribute__((visibility("default"))) MultiReceive {
 public:
  struct Message {
    Status status = Status::kOk;  // kOk, kTruncated, or why not all of it came
    PeerId source;
    Tag tag = 0;
    std::span<std::byte> bytes;  // where it is in the buffer
    std::uint64_t length = 0;    // as it was sent: more than there are bytes if it was cut
    std::optional<std::uint64_t> immediate;  // beside the bytes
  };

  // `most`: messages until it is used up, at least one; each takes the memory of a Request.
  explicit MultiReceive(std::size_t most, std::size_t least_room = 1);
  // Aborts if it is not done(), as ~Request() does.
  ~MultiReceive();
  MultiReceive(const MultiReceive&) = delete;
  MultiReceive& operator=(const MultiReceive&) = delete;

  // The next message that is complete: a short one may be before a long one that it lies behind.
  std::optional<Message> take();
  // One can be taken.
  bool has_message() const { return taken_ < complete_.load(std::memory_order_acquire); }

  // It takes no more messages, and all that matched are complete. Some may be left to take().
  bool done() const { return status() != Status::kPending; }
  // kPending until done; then kOk if it was used up, kCancelled, or why there will be no more.
  Status status() const { return status_.load(std::memory_order_acquire); }
  // It may be posted (again): it is done, and every message was taken.
  bool idle() const { return done() && !has_message(); }

  // Yours: the library never touches it.
  void* user = nullptr;
  // Called whenever a message is complete, and when the last was: see Request::on_done.
  void (*on_news)(MultiReceive& receive) = nullptr;

  // What the library remembers of it. Defined in the library only.
  class State;

 private:
  std::size_t taken_ = 0;
  std::atomic<std::size_t> complete_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // the last thing that is written when it is done
  std::unique_ptr<State> state_;
};

}  // namespace pullman
