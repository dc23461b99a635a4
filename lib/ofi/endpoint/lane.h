// One transmit or receive context of an endpoint (fi_endpoint(3)): the queues and counters bound to
// it, and the matching space of its receives. A plain endpoint has one lane for both directions, a
// scalable endpoint several of each. Starts no operation itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ofi/calls.h"
#include "ofi/endpoint/completion_bindings.h"
#include "ofi/endpoint/multi_receive.h"
#include "ofi/limits.h"
#include "pullman/context.h"
#include "pullman/operations.h"

namespace pullman::ofi {

// Each receive context has a pair of matching spaces.
static_assert(kMaxContexts == kSpaces / 2);

// Returns the matching space of messages of that kind for the receive context of that index.
constexpr std::uint8_t space_at(std::size_t index, Space space) {
  return static_cast<std::uint8_t>(2 * index + static_cast<std::size_t>(space));
}

struct Lane {
  bool sends = false;  // it transmits, and is enabled
  bool receives = false;
  std::uint8_t index = 0;  // among the endpoint's contexts of its direction
  CompletionBindings bindings;
  MultiReceiveQueue multi_receive;
  using Claimed = std::unordered_map<void*, Probe>;  // by the context of the call that claimed it
  std::array<Claimed, 2> claimed;                    // by Space
  std::vector<Counter*> remote_counters;             // that count peers' accesses to memory
  std::size_t aliases = 0;
};

// Whether the lane is enabled for calls of that kind.
inline bool is_enabled(const ReceiveCall& call) {
  return call.lane->receives;
}
template <typename Call>
bool is_enabled(const Call& call) {
  return call.lane->sends;
}

// --- Where the result of a call is reported

inline CompletionQueue* queue_for(const ReceiveCall& call) {
  return call.lane->bindings.receive_queue;
}
template <typename Call>
CompletionQueue* queue_for(const Call& call) {
  return call.silent ? nullptr : call.lane->bindings.send_queue;
}

// Whether a success writes a completion; an error always does.
inline bool reports_success(const ReceiveCall& call) {
  return !call.lane->bindings.selective_receives || (call.flags & FI_COMPLETION) != 0;
}
template <typename Call>
bool reports_success(const Call& call) {
  return !call.lane->bindings.selective_sends || (call.flags & FI_COMPLETION) != 0;
}

inline Counter* counter_for(const SendCall& call) {
  return call.lane->bindings.send_counter;
}
inline Counter* counter_for(const ReceiveCall& call) {
  return call.lane->bindings.receive_counter;
}
inline Counter* counter_for(const MemoryCall& call) {
  const CompletionBindings& bindings = call.lane->bindings;
  return call.writes ? bindings.write_counter : bindings.read_counter;
}
inline Counter* counter_for(const AtomicCall& call) {
  const CompletionBindings& bindings = call.lane->bindings;
  return call.kind == AtomicKind::kWrite ? bindings.write_counter : bindings.read_counter;
}

}  // namespace pullman::ofi
