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

enum class InState : std::uint8_t {
  kWaitingTurn,  // an earlier message of the sender has not begun to arrive: it must match first
  kUnexpected,   // its turn came, and no posted receive matched: the matcher has it
  kFilling,      // matched: its bytes go to the receive's buffer
};

struct InMessage {
  struct ById;
  using ListHook = boost::intrusive::list_member_hook<>;

  explicit InMessage(std::pmr::memory_resource* memory) : arrived(memory) {}

  boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>>
      by_id;           // inbox: incomplete
  ListHook in_bucket;  // matcher, while kUnexpected
  ListHook in_order;   // matcher, while kUnexpected
  ListHook to_grant;   // inbox, while a GRANT is due
  MessageId id = 0;
  PeerId peer;
  Tag tag = 0;
  std::uint64_t total = 0;     // bytes of the whole message
  std::uint64_t wanted = 0;    // bytes the sender will send: complete when they have arrived
  std::uint64_t charge = 0;    // of the peer's allowance, not returned yet
  std::byte* held = nullptr;   // bytes that came before the match
  std::size_t held_bytes = 0;  // room in `held`
  Request* receive = nullptr;  // while kFilling
  RangeSet arrived;
  InState state = InState::kWaitingTurn;

  bool complete() const { return wanted != 0 ? arrived.prefix() >= wanted : total == 0; }

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
