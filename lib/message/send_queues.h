// Where the unfinished sends of one outbox stand. It has this only while there are any: most peers
// of many are idle.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>

#include "base/sequence.h"
#include "pullman/request.h"

namespace pullman::message {

// Where an unfinished send stands (detail::Operation::stage).
enum class SendStage : std::uint32_t {
  kWaiting,         // no id yet: an earlier one waits, or ids, allowance or packets are used up
  kEager,           // has an id; eager bytes are being cut into chunks
  kAwaitingGrant,   // the eager bytes, or its envelope, are in packets; it has no grant
  kBulk,            // granted; the rest is being cut into chunks
  kSent,            // all wanted bytes are in packets; acks are outstanding
  kArriving,        // copied into packets; it is to be told when all has arrived
  kAwaitingResult,  // all has arrived, or was copied; the receiver's RESULT is outstanding
};

struct SendQueues {
  using Queue =
      boost::intrusive::list<detail::Operation,
                             boost::intrusive::member_hook<detail::Operation, detail::QueueHook,
                                                           &detail::Operation::queue>,
                             boost::intrusive::constant_time_size<true>>;
  struct IdOf {
    using type = MessageId;
    MessageId operator()(const detail::Operation& op) const { return op.message; }
  };
  using ById = boost::intrusive::set<
      detail::Operation,
      boost::intrusive::member_hook<detail::Operation, detail::IdHook, &detail::Operation::by_id>,
      boost::intrusive::key_of_value<IdOf>, boost::intrusive::constant_time_size<true>>;

  Queue waiting;    // kWaiting, in the order of send()
  Queue solicited;  // kWaiting, what the receiver asked for: waits for no other
  Queue eager;      // kEager
  Queue bulk;       // kBulk
  Queue arriving;   // kArriving
  ById unfinished;  // all that have an id

  bool empty() const { return unfinished.empty() && waiting.empty() && solicited.empty(); }
  std::size_t size() const { return unfinished.size() + waiting.size() + solicited.size(); }
};

inline SendStage stage_of(const detail::Operation& op) {
  return static_cast<SendStage>(op.stage);
}

inline void set_stage(detail::Operation& op, SendStage stage) {
  op.stage = static_cast<std::uint32_t>(stage);
}

}  // namespace pullman::message
