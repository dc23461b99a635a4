// A request: the caller's memory for one operation in progress.
//
// Ownership: the caller owns it and keeps it alive, unmoved, until done(). Until then the buffer of
// a receive is the library's to write, and the bytes of a send that was not copied stay as they
// are. The library allocates nothing per operation: what it must remember is in here, 264 bytes on
// 64-bit machines. A finished request can be used again.
// Threads: as the context it was given to.
// Errors: none is thrown. status() says how the operation ended, to_sentence() what to do about it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

class __attribute__((visibility("default"))) Request {
 public:
  Request();
  // Aborts if it is still pending: the library would write into freed memory.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool done() const { return status() != Status::kPending; }

  // kPending until done; then how it ended. kOk before its first use.
  Status status() const { return status_.load(std::memory_order_acquire); }

  // Valid once done. A receive: bytes now in the buffer. A send: bytes of the message.
  std::size_t length() const { return length_; }

  // A receive, once done: bytes of the message as it was sent (more than length() when truncated).
  std::uint64_t message_length() const { return message_length_; }

  // A receive, once done: the message's tag and who sent it. A send: as given.
  Tag tag() const { return tag_; }
  PeerId source() const { return source_; }

  // A receive, once done: what its sender gave beside the bytes, if anything; of a truncated
  // message, too.
  std::optional<std::uint64_t> immediate() const {
    return has_immediate_ ? std::optional(immediate_) : std::nullopt;
  }

  // Yours: the library never touches it.
  void* user = nullptr;

  // Called whenever this becomes done, in whichever call of the context that happens, the one that
  // began it included; so nobody has to look for those that are. It may put the request on a list;
  // it calls nothing of the context, throws nothing, and does not destroy the request.
  void (*on_done)(Request& request) = nullptr;

  // What the library remembers of the operation. Defined in the library only.
  struct Operation;

 private:
  // What the operation has here. More would change the ABI (docs/decisions/0025-abi.md).
  static constexpr std::size_t kOperationBytes = 200;

  Tag tag_ = 0;
  PeerId source_;
  std::size_t length_ = 0;
  std::uint64_t message_length_ = 0;
  std::uint64_t immediate_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // the last thing that is written when it is done
  bool has_immediate_ = false;
  alignas(8) std::array<std::byte, kOperationBytes> operation_;
};

}  // namespace pullman
