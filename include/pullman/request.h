// A request: the caller's memory for one operation in progress.
//
// Ownership: the caller owns it and keeps it alive, unmoved, until done() (for large sends and for
// receives it also keeps the message buffer alive and, for sends, unchanged). The library allocates
// nothing per operation: what it must remember is in here. A finished request can be used again.
// Threads: as the context it was given to.
#pragma once

#include <array>
#include <atomic>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "pullman/operations.h"
#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {

class Request;

namespace detail {

using QueueHook = boost::intrusive::list_member_hook<>;
using IdHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

// Of most operations there is nothing special to note.
struct Special {
  std::uint8_t wire_kind = 0;      // send: the kind of its message. receive: the space
  std::uint8_t lead_bytes = 0;     // send: so many of the message come before the caller's bytes
  std::uint8_t piece_count = 0;    // the caller's bytes lie in so many places, if not in one
  bool packs : 1 = false;          // send: the packer makes the bytes
  bool wants_result : 1 = false;   // send: not done before the receiver's RESULT
  bool has_result : 1 = false;     // send: that has come
  bool wants_arrival : 1 = false;  // send: not done before all of it has arrived, though copied
  bool is_own_copy : 1 = false;    // send: the caller does not wait for it
  bool has_priority : 1 = false;   // send: of others that are being cut
  bool is_solicited : 1 = false;   // send: the receiver asked for it
  bool is_special : 1 = false;     // send: any of all this is so
  bool is_announced : 1 = false;   // send: its envelope has left, the bytes follow when granted
  bool is_shared : 1 = false;      // receive: many messages go to it (MultiReceive)
};

// One of the places of the caller's bytes.
struct Piece {
  std::byte* at = nullptr;  // send: never written to
  std::size_t size = 0;
};

// The library's notes on an operation. Not for callers; the layout may change in any release.
struct Operation {
  enum class Kind : std::uint8_t { kIdle, kSend, kReceive, kAsk };

  Request* request = nullptr;   // whose notes these are
  QueueHook queue;              // send: in one of the outbox's queues. receive: in the matcher
  QueueHook all;                // send: every unfinished one of its peer
  IdHook by_id;                 // send: of those, each that has a message id
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
  Special special;
  Status result = Status::kOk;                              // send: what a RESULT said
  std::array<std::byte, 16> lead{};                         // send: the first bytes of its message
  std::unique_ptr<std::array<Piece, kMaxSegments>> pieces;  // if there are several
  Packer packer;
  Operation* asker = nullptr;  // send: whose question this is
};

}  // namespace detail

class __attribute__((visibility("default"))) Request {
 public:
  Request() { operation_.request = this; }
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

  // For the library.
  detail::Operation& operation() { return operation_; }
  void begin(detail::Operation::Kind kind, PeerId peer, Tag tag);
  void finish(Status status, std::size_t length);
  // Both in one, of a send that was copied.
  void finish_copied(PeerId peer, Tag tag, std::size_t length);
  void take_immediate(std::uint64_t immediate);
  void finish_receive(Status status, PeerId source, Tag tag, std::size_t length,
                      std::uint64_t message_length);

 private:
  detail::Operation operation_;
  Tag tag_ = 0;
  PeerId source_;
  std::size_t length_ = 0;
  std::uint64_t message_length_ = 0;
  std::atomic<Status> status_ = Status::kOk;  // the last thing that is written when it is done
  bool has_immediate_ = false;
  std::uint64_t immediate_ = 0;
};

}  // namespace pullman
