// Handles peers that may send nothing more, since messages that nobody receives hold all the memory
// they may have here (decision 0010). They go on when some memory comes back. A program that waits
// for such a peer meanwhile is told, or it would wait for ever.
#pragma once

#include <cstdint>

#include "engine/frames/standstill.h"
#include "engine/peer/peer_table.h"
#include "engine/send/ready_peers.h"
#include "message/match/matcher_table.h"
#include "message/reserve.h"
#include "pullman/config.h"
#include "pullman/stats.h"

namespace pullman::engine {

class BlockedPeers {
 public:
  BlockedPeers(const Config& config, const PeerTable& peers, ReadyPeers& ready,
               message::Reserve& reserve, message::MatcherTable& matchers,
               const message::InboxCounters& inbox_counters, const Stats& stats)
      : config_(config),
        peers_(peers),
        ready_(ready),
        reserve_(reserve),
        matchers_(matchers),
        inbox_counters_(inbox_counters),
        stats_(stats) {}

  // The peer says that it can send nothing more at that limit. Returns false if it was never told
  // such a limit.
  bool handle(Instant now, Peer& peer, std::uint64_t limit);
  bool any() const { return reserve_.any_blocked(); }
  // Called once per turn while there are blocked peers.
  void watch(Instant now);
  // Returns when watch() must be called at the latest.
  Instant next_due() const { return any() ? standstill_.due() : Instant::max(); }

 private:
  std::uint64_t messages_done() const;
  void end_receives(Standstill::Found found);

  const Config& config_;
  const PeerTable& peers_;
  ReadyPeers& ready_;
  message::Reserve& reserve_;
  message::MatcherTable& matchers_;
  const message::InboxCounters& inbox_counters_;
  const Stats& stats_;
  Standstill standstill_;
};

}  // namespace pullman::engine
