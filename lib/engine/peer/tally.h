// What is counted of a peer for those who look on (telemetry/rows.h), and which nothing else asks
// for. It stands beside the peer, which has no room for it.
#pragma once

#include <cstdint>

namespace pullman::engine {

// Of one peer.
struct Tally {
  std::uint64_t bytes_sent = 0;  // while it has one rail: of all numbered packets but probes
  std::uint32_t credit_stalls = 0;
  std::uint32_t stalled_at = ~std::uint32_t{0};  // how much had been sent at the last stall

  // Something waits for the peer's credit, and `sent` bytes have been sent: until there are more it
  // is the same stall, however often it is seen.
  void note_credit_stall(std::uint64_t sent) {
    const auto low = static_cast<std::uint32_t>(sent);
    if (low == stalled_at) return;
    stalled_at = low;
    ++credit_stalls;
  }
};

// The sums over peers that have ended.
struct EndedTotals {
  std::uint64_t lost = 0;
  std::uint64_t lost_after_timeout = 0;
  std::uint64_t credit_stalls = 0;
};

}  // namespace pullman::engine
