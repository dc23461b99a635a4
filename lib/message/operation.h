// The library's state of one operation. It lies in the caller's Request, hidden from the user.
//
// A request begins, and finishes once; in between the fields belong to the component that handles
// it: the outbox (a send), the matcher and then an inbox (a receive), or both (a get or atomic,
// whose answer is received). Does not know what they do with it. Threads: behind the context's
// lock.
#pragma once

#include <array>
#include <boost/intrusive/list_hook.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "pullman/operations.h"
#include "pullman/request.h"
#include "pullman/status.h"
#include "pullman/types.h"

namespace pullman {
namespace message {

using QueueHook = boost::intrusive::list_member_hook<>;
using IdHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

// What is special about an operation. For most nothing is.
struct Special {
  std::uint8_t wire_kind = 0;      // send: the kind of its message. receive: the space
  std::uint8_t lead_bytes = 0;     // send: leading bytes of the message, before the caller's
  std::uint8_t segment_count = 0;  // segments of the caller's bytes; 0: they lie in one place
  bool packs : 1 = false;          // send: the packer produces the bytes
  bool wants_result : 1 = false;   // send: not done before the receiver's RESULT has come
  bool has_result : 1 = false;     // send: the RESULT has come
  bool wants_arrival : 1 = false;  // send: copied, but not done before all of it has arrived
  bool is_own_copy : 1 = false;    // send: of the library's own copy; the caller does not wait
  bool has_priority : 1 = false;   // send: goes ahead of others that are being cut
  bool is_solicited : 1 = false;   // send: the receiver asked for it
  bool is_special : 1 = false;     // send: began with a SendDescriptor, not as a plain message
  bool is_announced : 1 = false;   // send: its envelope was sent, its bytes follow when granted
  bool is_shared : 1 = false;      // receive: many messages go to it (MultiReceive)
};

// One segment of the caller's bytes.
struct Segment {
  std::byte* at = nullptr;  // send: never written to
  std::size_t size = 0;
};

}  // namespace message

struct Request::Operation {
  enum class Kind : std::uint8_t { kIdle, kSend, kReceive, kAsk };

  explicit Operation(Request& whose) : request(&whose) {}

  static Operation& of(Request& request) {
    return *std::launder(reinterpret_cast<Operation*>(request.operation_.data()));
  }

  // Makes the request pending.
  void begin(Kind what, PeerId whom, Tag label);
  // Completes the request and tells the program. On return the request may be in use again, or
  // destroyed.
  void finish(Status status, std::size_t length);
  // Does both for a send that was copied.
  void finish_copied(PeerId whom, Tag label, std::size_t length);
  // Does the same for a receive, after take_immediate() if there are immediate data.
  void finish_receive(Status status, PeerId source, Tag label, std::size_t length,
                      std::uint64_t message_length);
  void take_immediate(std::uint64_t immediate);

  Request* const request;  // whose memory this is
  Kind kind = Kind::kIdle;
  message::Special special;
  Status result = Status::kOk;  // send: what a RESULT said
  message::QueueHook queue;     // send: in one of the outbox's queues. receive: in the matcher
  message::QueueHook all;       // send: every unfinished one of its peer
  message::IdHook by_id;        // send: of those, each that has a message id
  std::byte* buffer = nullptr;  // receive: destination. send: source, never written to
  std::size_t size = 0;         // of the buffer in bytes; send: of the message
  std::uint64_t order = 0;      // receive: counts posts, so that the earliest match wins
  std::uint64_t message = 0;    // send: message id, once it has one
  std::uint64_t sent = 0;       // send: bytes put into packets so far
  std::uint64_t granted = 0;    // send: bytes that may be put into packets
  std::uint32_t packets = 0;    // send: packets not yet acked that refer to the buffer
  std::uint32_t stage = 0;      // send: its message::SendStage
  Tag tag = 0;
  Tag ignore = 0;                    // receive: tag bits that need not match
  PeerId peer;                       // send: destination. receive: source, or kAnyPeer
  std::array<std::byte, 16> lead{};  // send: the first bytes of its message
  // The segments, if there are several.
  std::unique_ptr<std::array<message::Segment, kMaxSegments>> segments;
  Packer packer;
  Operation* asker = nullptr;  // send: the get or atomic that it asks for
};

namespace message {

using Operation = Request::Operation;

}  // namespace message
}  // namespace pullman
