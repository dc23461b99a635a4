// Tells failover/health.h the evidence of how rails do, and does what it says.
#include <algorithm>

#include "base/log.h"
#include "engine/peer/rail_choice.h"
#include "engine/rails/rail_manager.h"

namespace pullman::engine {
namespace {

// A rail is left if it loses more than this share, and three times what another one does.
constexpr double kTooMuch = 0.15;
// If the peer is silent for this part of its timeout on all rails that are not kept out, those that
// are kept out are probed, too.
constexpr int kLastWays = 4;

RailReason reason_of(nic::PortEvent::Kind kind) {
  if (kind == nic::PortEvent::Kind::kLinkDown) return RailReason::kLinkDown;
  return kind == nic::PortEvent::Kind::kAddressGone ? RailReason::kAddressGone
                                                    : RailReason::kFailed;
}

// Returns whether nothing but probes is in flight.
bool has_only_probes(const reliability::SendWindow& window) {
  for (auto n = window.floor(); n < window.next(); ++n) {
    const Packet* packet = window.holder(n);
    if (packet != nullptr && !is_probe(packet)) return false;
  }
  return true;
}

}  // namespace

failover::Health::Pace RailManager::pace_of(const Rail& rail) const {
  const auto& rtt = rail.link.rtt();
  return {.rtt = rtt.smoothed(), .timeout = rtt.timeout(config_.ack_delay)};
}

void RailManager::handle_silence(Instant now, Rail& rail, Duration waited) {
  const bool was_usable = usable(rail);
  failover::Health& health = upkeep_of(rail).health;
  if (health.is_patient(waited) && has_only_probes(rail.link.window())) return;
  if (health.handle_silence(now, pace_of(rail), waited)) settle(now, rail, was_usable);
}

// If no rail is up, probes those that were left at once: one may have been mended since it was
// probed last.
void RailManager::ask_left_rails(Instant now, Peer& peer) {
  if (upkeep_of(peer.home).health.up() || others_up(peer.home)) return;
  peer.for_each_rail([&](Rail& rail) {
    if (usable(rail)) return;
    upkeep_of(rail).health.ask_at_once(now);
    alarms_.arm_upkeep(now, rail);
  });
}

void RailManager::handle_answer(Instant now, Rail& rail, bool own_way, wire::PollGap poll_gap) {
  RailUpkeep& upkeep = upkeep_of(rail);
  const Instant sent_at = rail.link.answered_sent_at();
  if (own_way && !upkeep.health.up() && rail.resolved()) {
    const bool was_usable = usable(rail);
    if (upkeep.health.handle_answer(now, sent_at, pace_of(rail), !others_up(rail)))
      settle(now, rail, was_usable);
    alarms_.arm_upkeep(now, rail);
  }
  failover::Absences& theirs = rail.peer.rails->absences;
  if (failover::Absences::is_long(poll_gap)) theirs.note(now);
  const bool crowded = theirs.many(now) || clock_.absences().many(now);
  rail.peer.for_each_rail([&](Rail& other) {
    RailUpkeep& its = upkeep_of(other);
    if (&other == &rail || its.health.state() != RailState::kSuspect) return;
    if (!its.health.handle_witness(now, {sent_at, its.heard_at, crowded})) return;
    alarms_.arm_upkeep(now, other);
    poller_.poll_all_next_turn();
  });
  judge_losses(now, rail);
}

void RailManager::judge_losses(Instant now, Rail& rail) {
  RailUpkeep& upkeep = upkeep_of(rail);
  const reliability::Link& link = rail.link;
  if (!upkeep.losses.handle_ack(link.packets_arrived(), link.packets_lost(),
                                link.congestion_window()))
    return;
  const double loss = upkeep.losses.lasting();
  if (loss < kTooMuch || !upkeep.health.up()) return;
  bool better = false;
  rail.peer.for_each_rail([&](const Rail& other) {
    const RailUpkeep& its = upkeep_of(other);
    better = better || (&other != &rail && its.health.up() && its.losses.recent() * 3 < loss);
  });
  if (better) leave(now, rail, RailReason::kLossy);
}

void RailManager::handle_due(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  if (!usable(rail) && !lifecycle_.has_pending(peer) &&
      now - peer.heard_at > config_.peer_timeout) {
    reclaimer_.drop_probes(rail);
    peer.rails->resting = true;
    return;
  }
  const bool was_usable = usable(rail);
  if (was_usable && !others_up(rail) && now - peer.heard_at > config_.peer_timeout / kLastWays) {
    allow_kept_out(now, peer);
  }
  const bool ask = upkeep_of(rail).health.handle_due(now, pace_of(rail));
  if (was_usable && !usable(rail)) settle(now, rail, was_usable);
  alarms_.arm_upkeep(now, rail);
  if (!ask) return;
  if (!rail.resolved()) return resolver_.resolve_both(rail);  // before that flows() may be false
  if (!peer.flows()) return;
  if (usable(rail)) {
    peer.for_each_rail([&](Rail& other) {
      if (!usable(other)) return;
      reclaimer_.drop_probes(other, kProbesKept);
      other.ping_due = true;
    });
  } else {
    reclaimer_.drop_probes(rail, kProbesKept);
    rail.ping_due = true;
  }
  ready_.mark(peer);
}

void RailManager::leave(Instant now, Rail& rail, RailReason reason) {
  const bool was_usable = usable(rail);
  if (upkeep_of(rail).health.leave(now, reason)) settle(now, rail, was_usable);
  alarms_.arm_upkeep(now, rail);
}

void RailManager::handle_link_up(Instant now, Rail& rail) {
  if (upkeep_of(rail).health.handle_link_up(now)) settle(now, rail, usable(rail));
  alarms_.arm_upkeep(now, rail);
}

void RailManager::allow(Instant now, Rail& rail) {
  if (upkeep_of(rail).health.allow(now)) settle(now, rail, usable(rail));
  alarms_.arm_upkeep(now, rail);
}

// Follows up a change of the rail's state: what is on it leaves, or work comes back, and the other
// end is told.
void RailManager::settle(Instant now, Rail& rail, bool was_usable) {
  Peer& peer = rail.peer;
  RailUpkeep& upkeep = upkeep_of(rail);
  log().debug("rail {} by {}: {}, {}", rail.number, rail.nic->device().name,
              name(upkeep.health.state()), name(upkeep.health.reason()));
  if (was_usable && !usable(rail)) {
    ++upkeep.times_left;
    if (upkeep.health.reason() == RailReason::kSilent) ++rails_blamed_;
    evacuate(rail);
    lifecycle_.arm(now, peer);
    const bool failed = upkeep.health.state() != RailState::kDrained && !upkeep.kept_out_there;
    if (failed && config_.sticky_rails) {
      upkeep.kept_out_here = true;
      upkeep.health.keep_out(now);
    }
    report(rail);
  } else if (!was_usable && usable(rail)) {
    reclaimer_.drop_probes(rail);
    nics_.set_link(rail.module, true);  // it works, whatever its NIC said
    rail.link.reset_path_state();
    upkeep.losses.forget();
    forget_fault(rail);
    report(rail);
  }
  news_.handle_change(upkeep.news, usable(rail));
  settle_sizes(peer);
  alarms_.arm_upkeep(now, rail);
  if (!any_usable(peer)) allow_kept_out(now, peer);
  if (!upkeep.health.up()) ask_left_rails(now, peer);
  ready_.mark(peer);
}

// Allows rails that were kept out: to have no rail is worse than to have one that fails now and
// then (Config::sticky_rails).
void RailManager::allow_kept_out(Instant now, Peer& peer) {
  peer.for_each_rail([&](Rail& rail) {
    RailUpkeep& upkeep = upkeep_of(rail);
    if (!upkeep.kept_out_here && !upkeep.kept_out_there) return;
    upkeep.kept_out_here = upkeep.kept_out_there = false;
    if (!upkeep.stays_out()) allow(now, rail);
    report(rail);
  });
}

void RailManager::report(Rail& rail) {
  RailUpkeep& upkeep = upkeep_of(rail);
  ++upkeep.told;
  upkeep.report_due = true;
  rail.peer.rails->reports_due = true;
}

// Moves everything that is not acked on the rail, and everything that waits for it, to other rails.
// What arrives all the same, or has arrived, comes twice then, which is harmless (wire.md 4.2).
void RailManager::evacuate(Rail& rail) {
  auto& window = rail.link.window();
  const auto end = window.next();
  for (auto n = window.floor(); n < end && rail.link.in_flight() > 0; ++n) {
    if (Packet* packet = rail.link.find(n)) {
      rail.link.abandon(*packet);
      packet->state = channel::PacketState::kQueued;
      evacuate_packet(rail, *packet);
    }
  }
  for (auto& lost = rail.link.lost(); !lost.empty();) {
    Packet& packet = lost.front();
    lost.pop_front();
    evacuate_packet(rail, packet);
  }
  alarms_.cancel(rail.loss_timer);
  rail.ping_due = false;
}

void RailManager::evacuate_packet(Rail& rail, Packet& packet) {
  if (packet.in_channel) withdraw(rail, packet);
  if (packet.is_probe) return reclaimer_.release(rail, packet);
  if (&packet == rail.peer.hello) rail.peer.hello = nullptr;  // only its early data still counts
  ++upkeep_of(rail).evacuated;
  ++stats_.evacuated_packets;
  rail.peer.rails->evacuated.push_back(packet);
}

void RailManager::handle_link_event(Instant now, std::size_t slot, nic::PortEvent::Kind kind) {
  peers_.for_each([&](Peer& peer) {
    if (peer.rails == nullptr || peer.phase == Phase::kGone) return;
    peer.for_each_rail([&](Rail& rail) {
      if ((nics_of(rail) >> slot & 1) == 0) return;
      if (kind == nic::PortEvent::Kind::kLinkUp) return handle_link_up(now, rail);
      leave(now, rail, reason_of(kind));
    });
  });
}

std::optional<RailEvent> RailManager::take_event(PeerId id) {
  using failover::RailNews;
  RailNews::Note* oldest = nullptr;
  if (id == kAnyPeer) {
    oldest = news_.oldest();
  } else if (Peer* peer = peers_.find(id); peer != nullptr && peer->rails != nullptr) {
    peer->for_each_rail([&](const Rail& rail) {
      RailNews::Note& note = upkeep_of(rail).news;
      if (!RailNews::has_news(note)) return;
      if (oldest == nullptr || note.since < oldest->since) oldest = &note;
    });
  }
  if (oldest == nullptr) return std::nullopt;
  const Rail& rail = *peers_.find(oldest->peer)->rail(oldest->number);
  const failover::Health& health = upkeep_of(rail).health;
  return RailEvent{.peer = oldest->peer,
                   .number = oldest->number,
                   .nic = rail.nic->device().name,
                   .carries = oldest->carries,
                   .state = health.state(),
                   .reason = health.reason(),
                   .changes = RailNews::take(*oldest)};
}

// Returns whether the peer would have no usable rail without these modules.
bool RailManager::needs(const Peer& peer, std::uint32_t modules) const {
  if (peer.phase == Phase::kGone) return false;
  bool other = false;
  peer.for_each_rail(
      [&](const Rail& rail) { other = other || ((modules & nics_of(rail)) == 0 && usable(rail)); });
  return !other;
}

Status RailManager::set_drained(Instant now, std::string_view nic, bool drained) {
  const std::uint32_t named = nics_.modules_named(nic);
  if (named == 0) return Status::kInvalidArgument;
  bool needed = false;
  peers_.for_each([&](const Peer& peer) { needed = needed || needs(peer, named); });
  if (drained && needed) return Status::kBusy;
  nics_.set_drained(named, drained);
  peers_.for_each([&](Peer& peer) {
    if (peer.rails == nullptr || peer.phase == Phase::kGone) return;
    peer.for_each_rail([&](Rail& rail) {
      if ((named & nics_of(rail)) != 0) set_drained(now, rail, drained);
    });
  });
  return Status::kOk;
}

// Drains or restores one rail. The other end is told, and leaves it, too.
void RailManager::set_drained(Instant now, Rail& rail, bool drained) {
  RailUpkeep& upkeep = upkeep_of(rail);
  const bool kept_out = upkeep.kept_out_here && !drained;
  if (upkeep.drained_here == drained && !kept_out) return;
  upkeep.drained_here = drained;
  if (kept_out) upkeep.kept_out_here = false;
  if (drained) {
    leave(now, rail, RailReason::kOperator);
  } else if (!upkeep.stays_out()) {
    allow(now, rail);
  }
  report(rail);
  ready_.mark(rail.peer);
}

}  // namespace pullman::engine
