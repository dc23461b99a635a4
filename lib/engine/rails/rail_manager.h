// Manages the rails of all peers that have several: which pairs of NICs are rails, how each does,
// and what follows for the packets on it. failover/ decides and touches nothing; this class does
// what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/nics/channel_poller.h"
#include "engine/nics/poll_clock.h"
#include "engine/nics/resolver.h"
#include "engine/peer/alarms.h"
#include "engine/send/packet_reclaimer.h"
#include "engine/session/path_check.h"
#include "engine/session/peer_lifecycle.h"
#include "failover/pairing.h"
#include "failover/rail_news.h"
#include "pullman/stats.h"

namespace pullman::engine {

// The options and pools of a new rail's link.
struct LinkParts {
  const reliability::LinkOptions& options;
  const reliability::LinkResources& shared;
};

class RailManager {
 public:
  // `epoch` names this engine. Of two engines the one of the lower epoch decides.
  RailManager(const Config& config, std::uint64_t epoch, const LinkParts& links, PeerTable& peers,
              NicTable& nics, ChannelPoller& poller, Resolver& resolver, ReadyPeers& ready,
              PacketReclaimer& reclaimer, Alarms& alarms, const PollClock& clock, PathCheck& check,
              PeerLifecycle& lifecycle, Stats& stats)
      : config_(config),
        epoch_(epoch),
        links_(links),
        peers_(peers),
        nics_(nics),
        poller_(poller),
        resolver_(resolver),
        ready_(ready),
        reclaimer_(reclaimer),
        alarms_(alarms),
        clock_(clock),
        check_(check),
        lifecycle_(lifecycle),
        stats_(stats) {}

  // --- setting up (rail_setup.cc)

  // Prepares a peer for several rails, since both ends have several NICs.
  void start(Peer& peer, std::span<const wire::NicInfo> theirs);
  // Pairs the NICs, since the other end's WAYS have come.
  void pair(Peer& peer, const wire::Ways& theirs);
  // Ends the pairing without rails: the other end has none yet, and will send no WAYS.
  void pair_none(Peer& peer);
  // Makes the rails that the other end has decided on.
  void follow(Peer& peer, const wire::NicList& list);
  // Pairs the NICs that no rail uses. Returns whether there are new rails.
  bool plan(Peer& peer);
  // Handles the answer of our NIC: a destination, or that there is none now, which may change.
  void handle_resolution(Instant now, Rail& rail, bool resolved);
  // Writes as many reports as fit into `room` bytes; the rest waits for another packet. Returns the
  // bytes written.
  std::size_t write_reports(Peer& peer, std::byte* out, std::size_t room);
  // Handles a RAIL frame. Reports may overtake each other: the newest of a rail counts.
  void handle_report(Peer& peer, const wire::Frame& frame);
  // Returns which NICs were paired, and why; empty if the peer has one rail.
  std::string explain(PeerId id) const;

  // --- evidence (rail_upkeep.cc)

  // A packet that was sent `waited` ago is overdue, and the link probes.
  void handle_silence(Instant now, Rail& rail, Duration waited);
  // An ACK brought news of this rail. If it came over the rail itself (`own_way`), both directions
  // work. In any case it shows the other rails that the peer is alive. `poll_gap` is the ACK's.
  void handle_answer(Instant now, Rail& rail, bool own_way, wire::PollGap poll_gap);
  // Sends the probe that is due on this rail, unless nobody has needed the peer for long. If it is
  // to be known whether the peer is alive, the other rails are probed, too.
  void handle_due(Instant now, Rail& rail);
  // Applies a change of a NIC's link to all rails on it, of whatever peer.
  void handle_link_event(Instant now, std::size_t slot, nic::PortEvent::Kind kind);
  void handle_link_up(Instant now, Rail& rail);
  void leave(Instant now, Rail& rail, RailReason reason);
  // Drains or restores a NIC for the operator. Returns kBusy if at least one peer has no other
  // usable rail.
  Status set_drained(Instant now, std::string_view nic, bool drained);

  // --- what the program is told

  // Returns the oldest news, of that peer or of all (kAnyPeer).
  std::optional<RailEvent> take_event(PeerId id);
  // Returns how many rails were left because they were silent, since the start.
  std::uint64_t rails_blamed() const { return rails_blamed_; }

 private:
  // A pairing as our end sees it: our NICs are on the left.
  struct Pairing {
    std::vector<failover::NicEntry> here;
    std::vector<failover::NicEntry> there;
    failover::Ways ways;
    std::pair<std::uint8_t, std::uint8_t> home;  // rail 0: our NIC, theirs
    std::vector<failover::Pair> pairs;
  };

  wire::Ways ways_to(const Peer& peer) const;
  const wire::Ways& settle_ways(Peer& peer);
  static void list_entries(const Peer& peer, std::span<const wire::NicInfo> mine, Pairing& out);
  // Computes the pairing; their WAYS must be known. `ours`: our WAYS to their NICs.
  Pairing pairing_with(const Peer& peer, std::span<const wire::NicInfo> mine,
                       const wire::Ways& ours) const;
  void make_pairs(Peer& peer);
  void make_rail(Peer& peer, std::size_t number, std::uint8_t module, std::uint8_t there);
  void handle_resolved(Instant now, Rail& rail);

  failover::Health::Pace pace_of(const Rail& rail) const;
  void ask_left_rails(Instant now, Peer& peer);
  void judge_losses(Instant now, Rail& rail);
  void allow(Instant now, Rail& rail);
  void allow_kept_out(Instant now, Peer& peer);
  void settle(Instant now, Rail& rail, bool was_usable);
  void report(Rail& rail);
  void evacuate(Rail& rail);
  void evacuate_packet(Rail& rail, Packet& packet);
  void set_drained(Instant now, Rail& rail, bool drained);
  bool needs(const Peer& peer, std::uint32_t slots) const;

  const Config& config_;
  const std::uint64_t epoch_;
  const LinkParts links_;
  PeerTable& peers_;
  NicTable& nics_;
  ChannelPoller& poller_;
  Resolver& resolver_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  const PollClock& clock_;
  PathCheck& check_;
  PeerLifecycle& lifecycle_;
  Stats& stats_;

  failover::RailNews news_;  // its notes are in RailUpkeep, and are removed when a rail ends
  std::uint64_t rails_blamed_ = 0;
};

}  // namespace pullman::engine
