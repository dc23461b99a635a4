// What is done with a relayed packet that has come: pure, of the packet's head alone.
#pragma once

#include <cstdint>

#include "wire/relay.h"

namespace pullman::relay {

enum class Step : std::uint8_t {
  kHere,    // it is for this process
  kOnward,  // it is for another one, if there is a way
  kLoop,    // it has been here before
  kTooFar,  // it has passed as many connections as it may
};

// `self` names this process in the record of those passed; `is_ours`: the packet is for it.
inline Step step_for(const wire::RelayHead& head, wire::RelayId self, bool is_ours) {
  if (head.has_passed(self)) return Step::kLoop;
  if (is_ours) return Step::kHere;
  return head.hops > 1 ? Step::kOnward : Step::kTooFar;
}

// Makes the head with which a packet that goes onward leaves.
inline wire::RelayHead passed_on(wire::RelayHead head, wire::RelayId self) {
  --head.hops;
  head.passed[head.passed_count++] = self;
  return head;
}

}  // namespace pullman::relay
