// A message that has begun to arrive: what the inbox knows of it until it is complete and matched.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>

#include "base/sequence.h"
#include "message/allowance.h"
#include "message/range_set.h"
#include "pullman/types.h"

namespace pullman {
class Request;
}

namespace pullman::message {

struct Region;

enum class InState : std::uint8_t {
  kWaitingTurn,  // an earlier message of the sender has not begun to arrive: it must match first
  kUnexpected,   // its turn came, and no posted receive matched: the matcher has it
  kClaimed,      // taken out of the matching: the inbox keeps it for who claimed it
  kFilling,      // matched: its bytes go to the receive's buffer, or a region
  kOver,         // nothing is to come or to be done any more, but a RESULT is to be sent
};

struct InMessage {
  struct ById;
  using ListHook = boost::intrusive::list_member_hook<>;

  explicit InMessage(std::pmr::memory_resource* memory) : arrived(memory) {}

  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>
      by_id;           // inbox: incomplete
  ListHook in_bucket;  // matcher, while kUnexpected
  ListHook in_order;   // matcher, while kUnexpected; inbox, while kClaimed; region, while kFilling
  ListHook to_grant;   // inbox, while a GRANT or a RESULT is due
  MessageId id = 0;
  PeerId peer;
  Tag tag = 0;
  std::uint64_t total = 0;      // bytes of the whole message
  std::uint64_t wanted = 0;     // bytes the sender will send: complete when they have arrived
  std::uint64_t immediate = 0;  // of a put, while kFilling, if its kind says so
  // While kFilling where the bytes behind the lead go, unless a request has several places for
  // them; before that memory for those that have come, lead included, if any have.
  std::byte* bytes = nullptr;
  std::size_t room = 0;          // there
  union {                        // while kFilling
    Request* receive = nullptr;  // of messages and answers
    Region* region;              // of puts, unless refused
  };
  RangeSet arrived;
  std::uint32_t charge = 0;  // of the peer's allowance, not returned yet
  InState state = InState::kWaitingTurn;
  std::uint8_t kind = 0;  // wire/kind.h
  // By its envelope: of the bytes behind the lead none come unasked.
  bool announced : 1 = false;
  bool wants_result : 1 = false;  // its sender waits for a RESULT
  bool refused : 1 = false;       // which will say so: it may not be done

  bool complete() const {
    if (wanted != 0) return arrived.prefix() >= wanted;
    return total == 0 || (announced && state == InState::kFilling);
  }

  // What still comes is not wanted.
  void refuse() {
    bytes = nullptr;
    room = 0;
    region = nullptr;
    refused = true;
  }

  // How many ranges beyond the prefix are remembered; a packet that needs one more is refused, as
  // if it had been lost. No honest sender needs more: its chunks are not that short.
  std::size_t most_ranges() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(RangeSet::kMaxRanges, 1 + wanted / kBytesPerRange));
  }
};

// The charge covers what the allocator takes for a message of any length: its InMessage, the first
// range (charge_of() has the others), and 16 bytes at most about each of the three blocks.
static_assert(sizeof(Range) == kRangeBytes);
static_assert(sizeof(InMessage) + sizeof(Range) + 3 * 16 <= kMessageCharge);

}  // namespace pullman::message
