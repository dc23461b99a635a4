// A request: the caller's memory for one operation in progress.
//
// Ownership: the caller owns it and keeps it alive, unmoved, until done(). Until then the library
// may write to the buffer of a receive, and the program must not change the bytes of a send that
// was not copied. The library allocates nothing per operation: its state is in here, 264 bytes on
// 64-bit machines. A request that is done can be used again.
// Threads: as the context it was given to.
// Errors: nothing throws. status() says how the operation ended, to_sentence() what to do about it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

// One operation in progress.
class __attribute__((visibility("default"))) Request {
 public:
  // Makes one that is done: nothing was started yet.
  Request();
  // Aborts if it is still pending: the library would write into freed memory.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Returns true if it is not pending.
  bool done() const { return status() != Status::kPending; }

  // Returns kPending until done, then how the operation ended; kOk before its first use.
  Status status() const { return status_.load(std::memory_order_acquire); }

  // Valid once done. Of a receive: the bytes in the buffer. Of a send: the bytes of the message.
  std::size_t length() const { return length_; }

  // Of a receive that is done: the length of the message as sent, more than length() if truncated.
  std::uint64_t message_length() const { return message_length_; }

  // Of a receive that is done: the message's tag. Of a send: its tag.
  Tag tag() const { return tag_; }
  // Of a receive that is done: the message's sender. Of a send: its receiver.
  PeerId source() const { return source_; }

  // Of a receive that is done: the sender's immediate data, if any, even if the message was
  // truncated.
  std::optional<std::uint64_t> immediate() const {
    return has_immediate_ ? std::optional(immediate_) : std::nullopt;
  }

  // For the program: the library never touches it.
  void* user = nullptr;

  // Called whenever the request becomes done, from any call of the context, including the one that
  // started the operation, so that a program need not search its requests. It may put the request
  // on a list. It must not call the context, throw, or destroy the request; the callback of a
  // CallbackRequest, which has this for itself, may.
  void (*on_done)(Request& request) = nullptr;

  // The library's state of the operation. Defined in the library only.
  struct Operation;

 private:
  // The size of the state. Changing it would change the ABI (docs/decisions/0025-abi.md).
  static constexpr std::size_t kOperationBytes = 200;

  Tag tag_ = 0;
  PeerId source_;
  std::size_t length_ = 0;
  std::uint64_t message_length_ = 0;
  std::uint64_t immediate_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // written last when it becomes done
  bool has_immediate_ = false;
  alignas(8) std::array<std::byte, kOperationBytes> operation_;
};

}  // namespace pullman
