// How many peers have failed, and what is known of the last one.
#pragma once

#include <cstdint>

#include "nic/address.h"
#include "pullman/status.h"

namespace pullman::engine {

struct PeerFailures {
  std::uint64_t count = 0;
  Status why = Status::kOk;
  nic::Address address;
};

// Returns whether a peer that ends with that status has failed. One that leaves, or is left, has
// not.
inline bool is_failure(Status why) {
  return why == Status::kUnreachable || why == Status::kPeerDied || why == Status::kPeerRestarted ||
         why == Status::kIncompatible;
}

}  // namespace pullman::engine
