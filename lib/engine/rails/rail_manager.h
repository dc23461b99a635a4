// The rails of all peers that have several: which pairs of NICs make one, how each does, and what
// follows for the packets on it. failover/ decides and touches nothing; what it says is done here.
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

// What a new rail's link is made with.
struct LinkParts {
  const reliability::LinkOptions& options;
  const reliability::LinkResources& shared;
};

class RailManager {
 public:
  // `epoch`: of this engine. Of two engines the one of the lower epoch decides.
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

  // Both ends have several NICs: there may be more rails than the one they met on.
  void start(Peer& peer, std::span<const wire::NicInfo> theirs);
  // The other end's WAYS have come.
  void pair(Peer& peer, const wire::Ways& theirs);
  // The other end has no rails yet, and will send no WAYS.
  void pair_none(Peer& peer);
  // Rails that the other end has decided on.
  void follow(Peer& peer, const wire::NicList& list);
  // Pairs the NICs that no rail uses. Whether there are new rails.
  bool plan(Peer& peer);
  // Our NIC has an answer: a destination, or that there is none now, which may change.
  void handle_resolution(Instant now, Rail& rail, bool resolved);
  // As many reports as there is room for, in bytes; the rest waits for another packet. Returns the
  // bytes written.
  std::size_t write_reports(Peer& peer, std::byte* out, std::size_t room);
  // Reports may overtake each other: the newest of a rail counts.
  void handle_report(Peer& peer, const wire::Frame& frame);
  // Which NICs were paired, and why; empty if the peer has one rail.
  std::string explain(PeerId id) const;

  // --- evidence (rail_upkeep.cc)

  // A packet that was sent so long ago is overdue, and the link asks.
  void handle_silence(Instant now, Rail& rail, Duration waited);
  // An ACK brought news of this rail. If it came over the rail itself both directions work; for the
  // others it is a witness in any case that the peer is alive.
  void handle_answer(Instant now, Rail& rail, bool own_way);
  // A question is due on this rail, unless nobody has needed the peer for long; and on the others,
  // if it is to be known whether the peer lives.
  void handle_due(Instant now, Rail& rail);
  // A NIC's link has changed: all rails on it, of whatever peer.
  void handle_link_event(Instant now, std::size_t slot, nic::PortEvent::Kind kind);
  void handle_link_up(Instant now, Rail& rail);
  void leave(Instant now, Rail& rail, RailReason reason);
  // By the operator. kBusy: to one peer at least there is no other way.
  Status set_drained(Instant now, std::string_view nic, bool drained);

  // --- what is told

  // The oldest news, of that peer or of all.
  std::optional<RailEvent> take_event(PeerId id);
  // Rails left because they were silent, ever.
  std::uint64_t rails_blamed() const { return rails_blamed_; }

 private:
  // From our end: ours are left.
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
  // Once their WAYS are known. `ours`: our WAYS to their NICs.
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

  failover::RailNews news_;  // its notes stand with the rails, and leave it when a rail ends
  std::uint64_t rails_blamed_ = 0;
};

}  // namespace pullman::engine
