// Where an unfinished send stands, and the queues that sends wait in.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "message/operation.h"

namespace pullman::message {

// Operation::stage
enum class SendStage : std::uint32_t {
  kWaiting,         // no id yet: an earlier one waits, or ids, allowance or packets are used up
  kEager,           // has an id; eager bytes are being cut into chunks
  kDeprioritised,   // the same, once it has begun: what others were granted goes first
  kAwaitingGrant,   // the eager bytes, or its envelope, are in packets; it is not matched yet
  kBulk,            // granted; the rest is being cut into chunks
  kSent,            // all wanted bytes are in packets; acks are outstanding
  kArriving,        // copied into packets; it is to be told when all has arrived
  kAwaitingResult,  // all has arrived, or was copied; the receiver's RESULT is outstanding
};

inline SendStage stage_of(const Operation& op) {
  return static_cast<SendStage>(op.stage);
}
inline void set_stage(Operation& op, SendStage stage) {
  op.stage = static_cast<std::uint32_t>(stage);
}

// A send is in one at a time.
using SendQueue =
    boost::intrusive::list<Operation,
                           boost::intrusive::member_hook<Operation, QueueHook, &Operation::queue>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace pullman::message
