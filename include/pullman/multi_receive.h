// One buffer for many messages: Context::receive() with one of these posts it.
//
// The messages lie one behind the other, without gaps, in the order in which they matched. It keeps
// its place among the receives that are posted until fewer than `least_room` bytes are left, or as
// many messages have matched as it has notes for: then it is used up, and the next one has its
// turn. A message longer than what is left is cut, as in any receive. Ownership: the caller keeps
// it and the buffer alive, unmoved, until done(). It allocates when it is made, and never again;
// used up and emptied by take() it can be posted again. Threads: as the context it was given to;
// one at a time takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "pullman/request.h"
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

  // `most`: messages until it is used up, at least one.
  explicit MultiReceive(std::size_t most, std::size_t least_room = 1);
  // Aborts if it is not done(), as ~Request() does.
  ~MultiReceive() = default;
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

  // Yours: the library never touches it.
  void* user = nullptr;
  // Called whenever a message is complete, and when the last was: see Request::on_done.
  void (*on_news)(MultiReceive& receive) = nullptr;

  // For the library. It may be posted (again).
  bool idle() const { return done() && !has_message(); }
  // What is posted for it. begin(): `receive` has the buffer, and what it asks for.
  Request& posted() { return posted_; }
  void begin(std::span<std::byte> buffer);
  static MultiReceive& of(Request& posted) { return *static_cast<MultiReceive*>(posted.user); }
  // The receive of a message with so many bytes that has matched; it is not used up.
  Request& take_part(std::uint64_t bytes);
  bool used_up() const { return matched_ == most_ || room_.size() < least_room_; }

 private:
  static void note_complete(Request& part);
  static void note_end(Request& posted);
  void settle(bool news);

  std::size_t most_;
  std::size_t least_room_;
  Request posted_;
  std::unique_ptr<Request[]> parts_;           // one for each message, in the order of matching
  std::unique_ptr<std::uint32_t[]> in_order_;  // of completion: which parts are
  std::span<std::byte> room_;                  // what is left of the buffer
  std::size_t matched_ = 0;
  std::size_t taken_ = 0;
  std::atomic<std::size_t> complete_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // the last thing that is written when it is done
};

}  // namespace pullman
