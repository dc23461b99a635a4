// One transmit or receive context of an endpoint, in libfabric's words: where the completions of
// its operations go, and what its receives are matched with. A plain endpoint has one for both
// directions, a scalable one several of each. Does not begin anything itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ofi/calls.h"
#include "ofi/completion_bindings.h"
#include "ofi/limits.h"
#include "ofi/multi_receive.h"
#include "pullman/context.h"
#include "pullman/operations.h"

namespace pullman::ofi {

// A pair of matching spaces each.
static_assert(kMaxContexts == kSpaces / 2);

// Where the messages of a kind for the receive context of that index are matched.
constexpr std::uint8_t space_at(std::size_t index, Space space) {
  return static_cast<std::uint8_t>(2 * index + static_cast<std::size_t>(space));
}

struct Lane {
  bool sends = false;  // it is enabled, and one that does
  bool receives = false;
  std::uint8_t index = 0;  // among the endpoint's contexts of its direction
  CompletionBindings bindings;
  MultiReceiveQueue shared;
  using Claimed = std::unordered_map<void*, Probe>;  // by the context of the call that claimed it
  std::array<Claimed, 2> claimed;                    // by Space
  std::vector<Counter*> remote_counters;             // bound here, of what peers do to memory
  std::size_t aliases = 0;
};

}  // namespace pullman::ofi
