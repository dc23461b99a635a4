// Shares what each NIC can hold among the peers that were heard lately (wire.md 2.6). The credit is
// told in every packet, and computed when the number of those peers changes.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "base/time.h"
#include "engine/nics/nic_table.h"
#include "engine/peer/peer_queries.h"

namespace pullman::engine {

class CreditAllocator {
 public:
  CreditAllocator(const NicTable& nics, Instant now)
      : nics_(nics), tick_(static_cast<std::uint64_t>(now.time_since_epoch() / kTick)) {
    share();
  }

  void begin_turn(Instant now) {
    const auto tick = static_cast<std::uint64_t>(now.time_since_epoch() / kTick);
    if (tick != tick_) begin_tick(tick);
  }
  void note_heard(Instant now, Peer& peer) {
    peer.heard_at = now;
    const auto tick = static_cast<std::uint32_t>(tick_);
    if (peer.heard_tick == tick) [[likely]]
      return;
    peer.heard_tick = tick;
    ++heard_this_tick_;
    share();
  }
  // Computes the credits; called when our NICs have changed, too.
  void share();

  // Returns a peer's credit, in packets, for the NIC that it sends to.
  std::uint16_t credit(const Rail& rail) const {
    if (rail.peer.rails != nullptr) [[unlikely]]
      return credits_[upkeep_of(rail).here];
    return credits_[rail.module];
  }
  std::uint16_t credit_at(std::size_t slot) const { return credits_[slot]; }

 private:
  // Granularity of "heard lately".
  static constexpr Duration kTick = std::chrono::milliseconds(10);

  void begin_tick(std::uint64_t tick);

  const NicTable& nics_;
  std::uint64_t tick_;  // now / kTick
  std::uint32_t heard_this_tick_ = 0;
  std::uint32_t heard_last_tick_ = 0;
  std::array<std::uint16_t, wire::kMaxNics> credits_{};
};

}  // namespace pullman::engine
