// What the library remembers of one operation. It lies in the caller's Request, which shows its
// users nothing of it.
//
// A request begins, and finishes once; between the two the fields are those of whoever has it: the
// outbox (a send), the matcher and then an inbox (a receive), or both (a question whose answer is
// received). Does not know what they do with it. Threads: as the context's, behind its lock.
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

}  // namespace message

struct Request::Operation {
  enum class Kind : std::uint8_t { kIdle, kSend, kReceive, kAsk };

  explicit Operation(Request& whose) : request(&whose) {}

  static Operation& of(Request& request) {
    return *std::launder(reinterpret_cast<Operation*>(request.operation_.data()));
  }

  // The request is pending from now on.
  void begin(Kind what, PeerId whom, Tag label);
  // The request is done, and the program is told. It may be used again, or be gone, on return.
  void finish(Status status, std::size_t length);
  // Both in one, of a send that was copied.
  void finish_copied(PeerId whom, Tag label, std::size_t length);
  // The same of a receive; what came beside the bytes before that.
  void finish_receive(Status status, PeerId source, Tag label, std::size_t length,
                      std::uint64_t message_length);
  void take_immediate(std::uint64_t immediate);

  Request* const request;  // that this lies in
  Kind kind = Kind::kIdle;
  message::Special special;
  Status result = Status::kOk;  // send: what a RESULT said
  message::QueueHook queue;     // send: in one of the outbox's queues. receive: in the matcher
  message::QueueHook all;       // send: every unfinished one of its peer
  message::IdHook by_id;        // send: of those, each that has a message id
  std::byte* buffer = nullptr;  // receive: where to. send: where from, never written to
  std::size_t size = 0;         // of the buffer in bytes; send: of the message
  std::uint64_t order = 0;      // receive: counts posts, so the earliest match wins
  std::uint64_t message = 0;    // send: message id, once it has one
  std::uint64_t sent = 0;       // send: bytes put into packets so far
  std::uint64_t granted = 0;    // send: bytes that may be put into packets
  std::uint32_t packets = 0;    // send: packets not yet acked that refer to the buffer
  std::uint32_t stage = 0;      // send: where it stands (message::SendStage)
  Tag tag = 0;
  Tag ignore = 0;                    // receive: tag bits that need not match
  PeerId peer;                       // send: to. receive: from, or kAnyPeer
  std::array<std::byte, 16> lead{};  // send: the first bytes of its message
  // If there are several.
  std::unique_ptr<std::array<message::Piece, kMaxSegments>> pieces;
  Packer packer;
  Operation* asker = nullptr;  // send: whose question this is
};

namespace message {

using Operation = Request::Operation;

}  // namespace message
}  // namespace pullman
