// What a peer has more if both ends have several NICs: its other rails, and what is known of each.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/packet.h"
#include "engine/peer/rail.h"
#include "failover/health.h"
#include "failover/rail_news.h"
#include "wire/hello.h"
#include "wire/nics.h"
#include "wire/rails.h"

namespace pullman::engine {

// Of one rail, beyond its link.
struct RailUpkeep {
  failover::Health health;
  failover::RailNews::Note news;
  Timer timer;                   // health.next_due()
  Instant heard_at{};            // a packet came that speaks in this rail's numbers
  bool stream = false;           // the last resort
  std::uint8_t here = 0;         // our NIC that it sends to (wire.md 9.3)
  bool drained_here = false;     // by our operator
  bool drained_there = false;    // by the other's
  bool kept_out_here = false;    // it failed, and Config::sticky_rails
  bool kept_out_there = false;   // the other end's
  bool report_due = false;       // our last statement is to be told
  std::uint16_t told = 0;        // counts our statements
  std::uint16_t heard = 0;       // the newest of the other's
  std::uint64_t bytes_sent = 0;  // of packets with something of a message
  std::uint64_t packets_sent = 0;
  std::uint64_t evacuated = 0;  // packets
  std::uint64_t times_left = 0;
  double loss = 0;                   // share of the last packets judged
  std::uint64_t arrived_before = 0;  // the link's counters when its losses were judged last
  std::uint32_t lost_before = 0;

  // Until who wants it so says otherwise.
  bool stays_out() const {
    return drained_here || drained_there || kept_out_here || kept_out_there;
  }
};

struct Rails {
  // Index: the rail's number; 0 is the peer's home, and more[0] stays empty.
  std::array<std::unique_ptr<Rail>, wire::kMaxRails> more;
  bool any_resolved() const {
    return std::any_of(more.begin(), more.end(),
                       [](const auto& rail) { return rail != nullptr && rail->resolved(); });
  }
  std::array<std::unique_ptr<RailUpkeep>, wire::kMaxRails> upkeep;
  std::vector<wire::NicInfo> theirs;      // the other end's NICs, as its HELLO numbers them
  channel::PacketQueue evacuated;         // from rails that were left: to leave on others
  std::size_t small_rail = 0;             // takes small messages
  std::vector<wire::NicInfo> ours;        // ours when our_ways were found; until paired
  wire::Ways our_ways;                    // as told; of no NICs before
  wire::Ways their_ways;                  // if paired
  std::unique_ptr<wire::NicList> newest;  // waits for that, and for lists_due
  Instant lists_due{};                    // when the next may be taken
  bool paired = false;  // the other's WAYS came: more rails are what the lower epoch says
  bool ways_due = true;
  bool reports_due = true;  // WAYS or a RAIL frame is to be sent
  bool resting = false;     // idle for long: rails that are down are not asked
  bool spare_home = false;  // the pairing has better use for the home rail's NICs
};

}  // namespace pullman::engine
