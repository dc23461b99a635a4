// A message that has begun to arrive: what the inbox knows of it until it is complete and matched.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set_hook.hpp>
#include <cstddef>
#include <cstdint>

#include "base/sequence.h"
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
  std::uint64_t charge = 0;    // of the peer's allowance, returned when matched
  std::byte* held = nullptr;   // bytes that came before the match
  std::size_t held_bytes = 0;  // room in `held`
  Request* receive = nullptr;  // while kFilling
  RangeSet arrived;
  InState state = InState::kWaitingTurn;

  bool complete() const { return wanted != 0 ? arrived.prefix() >= wanted : total == 0; }
};

}  // namespace pullman::message
