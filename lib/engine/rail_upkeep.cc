// How rails do, and what follows: evidence goes to failover/health.h, what that says is done here.
#include <algorithm>

#include "base/log.h"
#include "engine/engine_impl.h"

namespace pullman::engine {
namespace {

// Losses are judged so many packets at a time.
constexpr std::uint64_t kJudged = 128;
// A rail that loses more than this, and three times what another one does, is left.
constexpr double kTooMuch = 0.15;
// Of the peer timeout: silent for so long on all rails that are not kept out, those are asked, too.
constexpr int kLastWays = 4;

RailReason reason_of(nic::PortEvent::Kind kind) {
  if (kind == nic::PortEvent::Kind::kLinkDown) return RailReason::kLinkDown;
  return kind == nic::PortEvent::Kind::kAddressGone ? RailReason::kAddressGone
                                                    : RailReason::kFailed;
}

bool is_question(const Packet* packet) {
  return packet != nullptr && packet->is_probe && !packet->is_path_probe;
}

// Nothing else is in flight.
bool has_only_questions(const reliability::SendWindow& window) {
  for (auto n = window.floor(); n < window.next(); ++n) {
    const Packet* packet = window.holder(n);
    if (packet != nullptr && !is_question(packet)) return false;
  }
  return true;
}

}  // namespace

failover::Health::Pace Engine::Impl::pace_of(const Rail& rail) const {
  const auto& rtt = rail.link.rtt();
  return {.rtt = rtt.smoothed(), .timeout = rtt.timeout(config_.ack_delay)};
}

// A packet's timeout has passed, and the link asks.
void Engine::Impl::handle_rail_silence(Instant now, Rail& rail, Duration waited) {
  const bool was_usable = usable(rail);
  failover::Health& health = upkeep_of(rail).health;
  if (health.is_patient(waited) && has_only_questions(rail.link.window())) return;
  if (health.handle_silence(now, pace_of(rail), waited)) settle_rail(now, rail, was_usable);
}

bool Engine::Impl::others_up(const Rail& rail) {
  bool any = false;
  rail.peer.for_each_rail(
      [&](const Rail& other) { any = any || (&other != &rail && upkeep_of(other).health.up()); });
  return any;
}

// If none is up, those that were left are asked at once: one may have been mended since it was
// asked last.
void Engine::Impl::ask_left_rails(Instant now, Peer& peer) {
  if (upkeep_of(peer.home).health.up() || others_up(peer.home)) return;
  peer.for_each_rail([&](Rail& rail) {
    if (usable(rail)) return;
    upkeep_of(rail).health.ask_at_once(now);
    arm_upkeep(now, rail);
  });
}

// An ack brought news of this rail. If it came over the rail itself both directions work; for the
// others it is a witness in any case that the peer is alive.
void Engine::Impl::handle_rail_answer(Instant now, Rail& rail, bool own_way) {
  RailUpkeep& care = upkeep_of(rail);
  const Instant sent_at = rail.link.answered_sent_at();
  if (own_way && !care.health.up() && rail.resolved()) {
    const bool was_usable = usable(rail);
    if (care.health.handle_answer(now, sent_at, pace_of(rail), !others_up(rail)))
      settle_rail(now, rail, was_usable);
    arm_upkeep(now, rail);
  }
  rail.peer.for_each_rail([&](Rail& other) {
    RailUpkeep& its = upkeep_of(other);
    if (&other == &rail || its.health.state() != RailState::kSuspect) return;
    if (its.health.handle_witness(now, sent_at, its.heard_at)) arm_upkeep(now, other);
  });
  judge_losses(now, rail);
}

void Engine::Impl::judge_losses(Instant now, Rail& rail) {
  RailUpkeep& care = upkeep_of(rail);
  const std::uint64_t arrived = rail.link.packets_arrived() - care.arrived_before;
  const std::uint32_t lost = rail.link.packets_lost() - care.lost_before;
  if (arrived + lost < kJudged) return;
  care.arrived_before = rail.link.packets_arrived();
  care.lost_before = rail.link.packets_lost();
  const double share = static_cast<double>(lost) / static_cast<double>(arrived + lost);
  care.loss = (care.loss + share) / 2;
  if (care.loss < kTooMuch || !care.health.up()) return;
  bool better = false;
  rail.peer.for_each_rail([&](const Rail& other) {
    const RailUpkeep& its = upkeep_of(other);
    better = better || (&other != &rail && its.health.up() && its.loss * 3 < care.loss);
  });
  if (better) leave_rail(now, rail, RailReason::kLossy);
}

// There is something to do with the peer again.
void Engine::Impl::wake_rails(Instant now, Peer& peer) {
  peer.rails->resting = false;
  peer.for_each_rail([&](Rail& rail) { arm_upkeep(now, rail); });
}

// A question is due on this rail, unless nobody has needed the peer for long; and on the others, if
// it is to be known whether the peer lives.
void Engine::Impl::handle_rail_due(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  if (now >= list_due(peer)) take_newest_list(now, peer);
  if (!usable(rail) && !has_pending(peer) && now - peer.heard_at > config_.peer_timeout) {
    drop_probes(rail);
    peer.rails->resting = true;
    return;
  }
  const bool was_usable = usable(rail);
  if (was_usable && !others_up(rail) && now - peer.heard_at > config_.peer_timeout / kLastWays) {
    allow_kept_out(now, peer);
  }
  const bool ask = upkeep_of(rail).health.handle_due(now, pace_of(rail));
  if (was_usable && !usable(rail)) settle_rail(now, rail, was_usable);
  arm_upkeep(now, rail);
  if (!ask) return;
  if (!rail.resolved()) return resolve_rail(rail);  // nothing flows before one is
  if (!peer.flows()) return;
  if (usable(rail)) {
    peer.for_each_rail([&](Rail& other) {
      if (!usable(other)) return;
      drop_probes(other, kQuestionsKept);
      other.ping_due = true;
    });
  } else {
    drop_probes(rail, kQuestionsKept);
    rail.ping_due = true;
  }
  mark_ready(peer);
}

void Engine::Impl::leave_rail(Instant now, Rail& rail, RailReason reason) {
  const bool was_usable = usable(rail);
  if (upkeep_of(rail).health.leave(now, reason)) settle_rail(now, rail, was_usable);
  arm_upkeep(now, rail);
}

void Engine::Impl::handle_link_up(Instant now, Rail& rail) {
  if (upkeep_of(rail).health.handle_link_up(now)) settle_rail(now, rail, usable(rail));
  arm_upkeep(now, rail);
}

void Engine::Impl::allow_rail(Instant now, Rail& rail) {
  if (upkeep_of(rail).health.allow(now)) settle_rail(now, rail, usable(rail));
  arm_upkeep(now, rail);
}

// The rail's state has changed: what is on it leaves, or work comes back; and the other end is
// told.
void Engine::Impl::settle_rail(Instant now, Rail& rail, bool was_usable) {
  Peer& peer = rail.peer;
  RailUpkeep& care = upkeep_of(rail);
  log().debug("rail {} by {}: {}, {}", rail.number, module_of(rail).device().name,
              name(care.health.state()), name(care.health.reason()));
  if (was_usable && !usable(rail)) {
    ++care.times_left;
    if (care.health.reason() == RailReason::kSilent) ++rails_blamed_;
    evacuate(rail);
    arm(now, peer);
    const bool failed = care.health.state() != RailState::kDrained && !care.kept_out_there;
    if (failed && config_.sticky_rails) {
      care.kept_out_here = true;
      care.health.keep_out(now);
    }
    report(rail);
  } else if (!was_usable && usable(rail)) {
    drop_probes(rail);
    links_down_ &= ~(std::uint32_t{1} << rail.module);  // it works, whatever was said
    rail.link.reset_path_state();
    care.loss = 0;
    forget_fault(rail);
    report(rail);
  }
  rail_news_.handle_change(care.news, usable(rail));
  settle_sizes(peer);
  arm_upkeep(now, rail);
  if (!any_usable(peer)) allow_kept_out(now, peer);
  if (!care.health.up()) ask_left_rails(now, peer);
  mark_ready(peer);
}

bool Engine::Impl::any_usable(const Peer& peer) {
  bool any = false;
  peer.for_each_rail([&](const Rail& rail) { any = any || usable(rail); });
  return any;
}

// To be without a way is worse than to have one that fails now and then (Config::sticky_rails).
void Engine::Impl::allow_kept_out(Instant now, Peer& peer) {
  peer.for_each_rail([&](Rail& rail) {
    RailUpkeep& care = upkeep_of(rail);
    if (!care.kept_out_here && !care.kept_out_there) return;
    care.kept_out_here = care.kept_out_there = false;
    if (!care.stays_out()) allow_rail(now, rail);
    report(rail);
  });
}

void Engine::Impl::arm_upkeep(Instant now, Rail& rail) {
  RailUpkeep& care = upkeep_of(rail);
  Instant due = care.health.next_due();
  if (rail.number == 0) due = std::min(due, list_due(rail.peer));
  if (care.timer.checked_in()) {
    if (care.timer.due == due) return;
    alarms_.check_out(care.timer);
  }
  if (due == kNever || rail.peer.phase == Phase::kGone) return;
  alarms_.check_in(now, std::max(due - now, Duration(1)), care.timer);
}

void Engine::Impl::report(Rail& rail) {
  RailUpkeep& care = upkeep_of(rail);
  ++care.told;
  care.report_due = true;
  rail.peer.rails->reports_due = true;
}

// Everything un-acked on the rail, and everything that waits for it, is to leave on others. What
// arrives all the same, or has arrived, comes twice then, which is harmless (wire.md 4.2).
void Engine::Impl::evacuate(Rail& rail) {
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
  if (rail.loss_timer.checked_in()) alarms_.check_out(rail.loss_timer);
  rail.ping_due = false;
}

void Engine::Impl::evacuate_packet(Rail& rail, Packet& packet) {
  if (packet.in_channel) withdraw(rail, packet);
  if (packet.is_probe) return release(rail, packet);
  if (&packet == rail.peer.hello)
    rail.peer.hello = nullptr;  // what rode with it is all that counts
  ++upkeep_of(rail).evacuated;
  ++stats_.evacuated_packets;
  rail.peer.rails->evacuated.push_back(packet);
}

// Questions that had no answer: the newest are kept. A rail that is not used has nothing else in
// flight, or lost.
void Engine::Impl::drop_probes(Rail& rail, std::size_t kept) {
  auto& window = rail.link.window();
  for (auto n = window.next(); n > window.floor() && rail.link.in_flight() > 0;) {
    Packet* packet = rail.link.find(--n);
    if (!is_question(packet)) continue;
    if (kept > 0) {
      --kept;
      continue;
    }
    rail.link.abandon(*packet);
    release(rail, *packet);
  }
  rail.link.take_probe();
  if (usable(rail)) return;
  for (auto& lost = rail.link.lost(); !lost.empty();) {
    Packet& packet = lost.front();
    lost.pop_front();
    repeat_nics(packet, rail.peer);
    release(rail, packet);
  }
}

// The NIC says so: all rails on it, of whatever peer.
void Engine::Impl::handle_link_event(Instant now, std::size_t module, nic::PortEvent::Kind kind) {
  using Kind = nic::PortEvent::Kind;
  const std::uint32_t bit = std::uint32_t{1} << module;
  const bool down = kind != Kind::kLinkUp;
  // What is up for one peer, whose rail has answered already, may be down for others.
  if (down && (links_down_ & bit) != 0) return;
  links_down_ = down ? links_down_ | bit : links_down_ & ~bit;
  log().info("NIC {}: {}", modules_[module]->device().name,
             kind == Kind::kLinkDown      ? "link down"
             : kind == Kind::kAddressGone ? "its address is gone"
             : kind == Kind::kLinkUp      ? "link up"
                                          : "failed");
  if (down) leave_calls_by(module);
  peers_.for_each([&](Peer& peer) {
    if (peer.rails == nullptr || peer.phase == Phase::kGone) return;
    peer.for_each_rail([&](Rail& rail) {
      if ((nics_of(rail) >> module & 1) == 0) return;
      if (!down) return handle_link_up(now, rail);
      leave_rail(now, rail, reason_of(kind));
    });
  });
}

// The oldest news, of that peer or of all.
std::optional<RailEvent> Engine::Impl::take_rail_event(PeerId id) {
  using failover::RailNews;
  RailNews::Note* oldest = nullptr;
  if (id == kAnyPeer) {
    oldest = rail_news_.oldest();
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
                   .nic = module_of(rail).device().name,
                   .carries = oldest->carries,
                   .state = health.state(),
                   .reason = health.reason(),
                   .changes = RailNews::take(*oldest)};
}

// The NIC's modules, a bit for each.
std::uint32_t Engine::Impl::modules_named(std::string_view nic) const {
  std::uint32_t named = 0;
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    if (modules_[i]->device().name == nic) named |= std::uint32_t{1} << i;
  }
  return named;
}

// Without these modules there would be no rail to it that may be used.
bool Engine::Impl::needs(const Peer& peer, std::uint32_t modules) const {
  if (peer.phase == Phase::kGone) return false;
  bool other = false;
  peer.for_each_rail(
      [&](const Rail& rail) { other = other || ((modules & nics_of(rail)) == 0 && usable(rail)); });
  return !other;
}

Status Engine::Impl::set_drained(Instant now, std::string_view nic, bool drained) {
  const std::uint32_t named = modules_named(nic);
  if (named == 0) return Status::kInvalidArgument;
  bool needed = false;
  peers_.for_each([&](const Peer& peer) { needed = needed || needs(peer, named); });
  if (drained && needed) return Status::kBusy;
  drained_ = drained ? drained_ | named : drained_ & ~named;
  peers_.for_each([&](Peer& peer) {
    if (peer.rails == nullptr || peer.phase == Phase::kGone) return;
    peer.for_each_rail([&](Rail& rail) {
      if ((named & nics_of(rail)) != 0) set_drained(now, rail, drained);
    });
  });
  return Status::kOk;
}

// The other end is told, and leaves it, too.
void Engine::Impl::set_drained(Instant now, Rail& rail, bool drained) {
  RailUpkeep& care = upkeep_of(rail);
  const bool kept_out = care.kept_out_here && !drained;
  if (care.drained_here == drained && !kept_out) return;
  care.drained_here = drained;
  if (kept_out) care.kept_out_here = false;
  if (drained) {
    leave_rail(now, rail, RailReason::kOperator);
  } else if (!care.stays_out()) {
    allow_rail(now, rail);
  }
  report(rail);
  mark_ready(rail.peer);
}

}  // namespace pullman::engine
