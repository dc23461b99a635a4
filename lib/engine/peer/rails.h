// The other rails of a peer, if both ends have several NICs, and what is known of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/packet.h"
#include "engine/peer/rail.h"
#include "failover/absences.h"
#include "failover/health.h"
#include "failover/loss_rate.h"
#include "failover/rail_news.h"
#include "wire/hello.h"
#include "wire/nics.h"
#include "wire/rails.h"

namespace pullman::engine {

// The state of one rail beyond its link.
struct RailUpkeep {
  failover::Health health;
  failover::RailNews::Note news;
  Timer timer;                   // expires at health.next_due()
  Instant heard_at{};            // when a packet with this rail's numbers last came
  bool stream = false;           // it is the last resort
  bool relayed = false;          // it goes through other processes: the very last
  std::uint8_t here = 0;         // our NIC that the peer sends to on it (wire.md 9.3)
  bool drained_here = false;     // drained by our operator
  bool drained_there = false;    // drained by the peer's operator
  bool kept_out_here = false;    // it failed, and Config::sticky_rails keeps it out
  bool kept_out_there = false;   // the peer keeps it out
  bool report_due = false;       // our newest statement (RAIL) is to be sent
  std::uint16_t told = 0;        // counts our statements
  std::uint16_t heard = 0;       // the count of the peer's newest statement
  std::uint64_t bytes_sent = 0;  // of all packets but probes
  std::uint64_t packets_sent = 0;
  std::uint64_t evacuated = 0;  // packets that left for other rails
  std::uint64_t times_left = 0;
  failover::LossRate losses;

  // Returns whether the rail is kept out of use until the operator, or the end that keeps it out,
  // allows it.
  bool stays_out() const {
    return drained_here || drained_there || kept_out_here || kept_out_there;
  }
};

struct Rails {
  // Indexed by the rail's number; rail 0 is the peer's home, so more[0] stays empty.
  std::array<std::unique_ptr<Rail>, wire::kMaxRails> more;
  bool any_resolved() const {
    return std::any_of(more.begin(), more.end(),
                       [](const auto& rail) { return rail != nullptr && rail->resolved(); });
  }
  std::array<std::unique_ptr<RailUpkeep>, wire::kMaxRails> upkeep;
  std::vector<wire::NicInfo> theirs;      // the other end's NICs, as its HELLO numbers them
  channel::PacketQueue evacuated;         // packets from rails that were left, to be sent on others
  std::size_t small_rail = 0;             // number of the rail that takes small messages
  std::vector<wire::NicInfo> ours;        // our NICs when our_ways was made; empty once paired
  wire::Ways our_ways;                    // as sent to the peer; names no NICs before that
  wire::Ways their_ways;                  // the peer's, if paired
  std::unique_ptr<wire::NicList> newest;  // the peer's newest list; waits for both below
  Instant lists_due{};                    // when the next list may be taken
  failover::Absences absences;            // the peer's, as its ACKs tell
  bool paired = false;  // WAYS came, if any: the lower epoch decides on any more rails
  bool ways_due = true;
  bool reports_due = true;  // a WAYS or RAIL frame is to be sent
  bool resting = false;     // the peer is idle for long: rails that are down are not probed
  bool spare_home = false;  // the home rail is not one of the pairs that were chosen
};

}  // namespace pullman::engine
