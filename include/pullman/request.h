// A request: the caller's memory for one operation in progress.
//
// Ownership: the caller owns it and keeps it alive, unmoved, until done() (for large sends and for
// receives it also keeps the message buffer alive and, for sends, unchanged). The library allocates
// nothing per operation: what it must remember is in here. A finished request can be used again.
// Threads: as the context it was given to.
#pragma once

#include <boost/intrusive/list_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

class Request;

namespace detail {

using QueueHook = boost::intrusive::list_member_hook<>;

// The library's notes on an operation. Not for callers; the layout may change in any release.
struct Operation {
  enum class Kind : std::uint8_t { kIdle, kSend, kReceive };

  Request* request = nullptr;   // whose notes these are
  QueueHook queue;              // send: in one of the outbox's queues. receive: in the matcher
  QueueHook all;                // send: every unfinished one of its peer
  std::byte* buffer = nullptr;  // receive: where to. send: where from, never written to
  std::size_t size = 0;         // of the buffer in bytes; send: of the message
  std::uint64_t order = 0;      // receive: counts posts, so the earliest match wins
  std::uint64_t message = 0;    // send: message id, once it has one
  std::uint64_t sent = 0;       // send: bytes put into packets so far
  std::uint64_t granted = 0;    // send: bytes that may be put into packets
  std::uint32_t packets = 0;    // send: packets not yet acked that refer to the buffer
  std::uint32_t stage = 0;      // send: where it stands (message::SendStage)
  Tag tag = 0;
  Tag ignore = 0;  // receive: tag bits that need not match
  PeerId peer;     // send: to. receive: from, or kAnyPeer
  Kind kind = Kind::kIdle;
};

}  // namespace detail

class __attribute__((visibility("default"))) Request {
 public:
  Request() { operation_.request = this; }
  // Aborts if it is still pending: the library would write into freed memory.
  ~Request();
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  bool done() const { return status_ != Status::kPending; }

  // kPending until done; then how it ended. kOk before its first use.
  Status status() const { return status_; }

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
  // it calls nothing of the context, and does not destroy the request.
  void (*on_done)(Request& request) = nullptr;

  // For the library.
  detail::Operation& operation() { return operation_; }
  void begin(detail::Operation::Kind kind, PeerId peer, Tag tag);
  void finish(Status status, std::size_t length);
  void finish_receive(Status status, PeerId source, Tag tag, std::size_t length,
                      std::uint64_t message_length);

 private:
  detail::Operation operation_;
  Tag tag_ = 0;
  PeerId source_;
  std::size_t length_ = 0;
  std::uint64_t message_length_ = 0;
  Status status_ = Status::kOk;
  bool has_immediate_ = false;
  std::uint64_t immediate_ = 0;
};

}  // namespace pullman
