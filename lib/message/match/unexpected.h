// An unexpected message: what is known of it from its arrival until a receive takes it. A short
// one, which arrived whole, is a ShortMessage and takes little memory; any other is an InMessage
// (in_message.h).
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/sequence.h"
#include "message/allowance.h"
#include "pullman/types.h"
#include "wire/kind.h"

namespace pullman::message {

enum class InState : std::uint8_t {
  kWaitingTurn,  // an earlier message of the sender has not begun to arrive: it must match first
  kUnexpected,   // its turn came and no posted receive fits: the matcher has it
  kClaimed,      // taken out of the matching; the inbox keeps it for the program
  kFilling,      // matched: its bytes go to the receive's buffer or a region
  kOver,         // complete; at most a frame to its sender is still due
};

// Whether it is a ShortMessage or an InMessage.
enum class Form : std::uint8_t { kShort, kWhole };

struct Unexpected {
  using ListHook = boost::intrusive::list_member_hook<>;
  using IdHook = boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>;

  // Its place in its bucket of the table (unexpected_table.h).
  struct Links {
    Unexpected* next = nullptr;      // of the bucket
    Unexpected* previous = nullptr;  // of the bucket; the first one's is the last
  };

  explicit Unexpected(Form what) : to_grant(), in_order(), form(what) {}
  ~Unexpected() {
    to_grant.~ListHook();
    in_order.~ListHook();
  }
  Unexpected(const Unexpected&) = delete;
  Unexpected& operator=(const Unexpected&) = delete;

  // Between the two calls the first union holds `links`.
  void begin_links() {
    to_grant.~ListHook();
    new (&links) Links;
  }
  void end_links() { new (&to_grant) ListHook; }
  // Between the two calls the second union holds `early`.
  void begin_early() {
    in_order.~ListHook();
    new (&early) IdHook;
  }
  void end_early() {
    early.~IdHook();
    new (&in_order) ListHook;
  }

  union {
    ListHook to_grant;  // inbox: an InMessage, while a GRANT or a RESULT is due
    Links links;        // matcher, while kUnexpected
  };
  union {
    ListHook in_order;  // matcher, while kUnexpected; inbox, while kClaimed; region, while
                        // kFilling; inbox, a short one while kOver
    IdHook early;       // inbox: a short one, while kWaitingTurn
  };
  MessageId id = 0;
  PeerId peer;
  Tag tag = 0;
  std::uint64_t total = 0;   // bytes of the whole message
  std::uint32_t charge = 0;  // part of the peer's allowance, not returned yet
  InState state = InState::kWaitingTurn;
  std::uint8_t kind = 0;  // wire/kind.h
  Form form;
  // An InMessage only: it came by its envelope, so bytes behind the lead arrive only after a GRANT.
  bool announced : 1 = false;
  bool wants_result : 1 = false;  // its sender waits for a RESULT
  bool refused : 1 = false;       // its RESULT tells that the access was refused
};

struct ShortMessage : Unexpected {
  ShortMessage() : Unexpected(Form::kShort) {}

  std::array<std::byte, wire::kMaxShortBytes> bytes;  // lead included
};

// The charge covers the message, its share of the matcher's table, which has a bucket for each
// message, and a pointer and a share of the head in its part of the slab.
static_assert(sizeof(ShortMessage) + 3 * sizeof(void*) <= kShortCharge);

}  // namespace pullman::message
