// The stages of an unfinished send, and the queues that sends wait in.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>

#include "message/operation.h"

namespace pullman::message {

// Operation::stage
enum class SendStage : std::uint32_t {
  kWaiting,         // no id yet: behind an earlier one, or no id, allowance or packet
  kEager,           // has an id; eager bytes are being cut into chunks
  kDeprioritised,   // has begun as kEager; sends that are granted go first
  kAwaitingGrant,   // eager bytes or envelope are in packets; not matched yet
  kBulk,            // granted; the rest is being cut into chunks
  kSent,            // all wanted bytes are in packets; ACKs are outstanding
  kArriving,        // copied into packets; done when all of them have arrived
  kAwaitingResult,  // arrived or copied; the receiver's RESULT is outstanding
};

inline SendStage stage_of(const Operation& op) {
  return static_cast<SendStage>(op.stage);
}
inline void set_stage(Operation& op, SendStage stage) {
  op.stage = static_cast<std::uint32_t>(stage);
}

// A send is in at most one queue at a time.
using SendQueue =
    boost::intrusive::list<Operation,
                           boost::intrusive::member_hook<Operation, QueueHook, &Operation::queue>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace pullman::message
