#include "engine/session/peer_lifecycle.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/session/pending_hello.h"

namespace pullman::engine {

bool PeerLifecycle::has_pending(const Peer& peer) const {
  return peer.phase < Phase::kConnected || !peer.outbox.idle() || in_flight(peer) > 0 ||
         peer.inbox.expects_more() || peer.bye_due ||
         (peer.rails != nullptr && !peer.rails->evacuated.empty()) ||
         peer.one_sided.pending() != 0 || endings_.matchers.any_receive_from(peer.id);
}

Duration PeerLifecycle::look_interval() const {
  return std::min(alarm_interval(), kLook);
}

// This is not called while callers that have proved nothing have places: those go first.
void PeerLifecycle::ask_idle_peers(Instant now) {
  if (now < idle_peers_due_) return;
  idle_peers_due_ = now + alarm_interval();
  peers_.for_each([&](Peer& peer) {
    if (peer.alarm.checked_in() || !peer.flows()) return;
    arm(now, peer);
    peer.for_each_rail([](Rail& rail) { rail.ping_due = usable(rail); });
    ready_.mark(peer);
  });
}

void PeerLifecycle::arm(Instant now, Peer& peer) {
  if (peer.alarm.checked_in() || peer.phase == Phase::kGone) return;
  set_heard(peer, std::max(peer.heard_at, now));
  peer.news_at = std::max(peer.news_at, now);
  if (peer.rails != nullptr && peer.rails->resting) alarms_.wake_rails(now, peer);
  alarms_.check_in(now, look_interval(), peer.alarm);
}

void PeerLifecycle::handle_alarm(Instant now, Peer& peer) {
  if (peer.phase == Phase::kFarewell) return end(peer, Status::kClosed);
  if (peer.phase == Phase::kGone || !has_pending(peer)) return;
  // While nobody called progress() we neither asked nor listened: that time is not the peer's
  // silence. So a peer is given at least eight alarms, however rarely the program calls.
  const Duration late = now - peer.alarm.due;
  set_heard(peer, std::min(now, peer.heard_at + late));
  peer.news_at = std::min(now, peer.news_at + late);
  if (peer.refused_at != Instant::min()) peer.refused_at = std::min(now, peer.refused_at + late);
  const bool silent = now - peer.heard_at >= config_.peer_timeout;
  // A peer that answers probes but acknowledges nothing else is unreachable, too.
  const bool stalled = now - peer.news_at >= config_.peer_timeout && has_unacked_data(peer);
  if (silent || (stalled && peer.phase >= Phase::kConnected)) {
    return end(peer, died(peer) ? Status::kPeerDied : Status::kUnreachable);
  }
  // The peer answers, but takes nothing more of what we have to deliver before we may leave.
  if (peer.phase == Phase::kClosing && now - peer.news_at >= config_.peer_timeout) {
    return end(peer, Status::kTimedOut);
  }
  const std::size_t packets = in_flight(peer);
  if (packets == 0 && peer.phase != Phase::kClosing) peer.news_at = now;
  // What waits in memory has no timer that would ask.
  const bool asks = packets == in_memory(peer) && now - peer.heard_at >= look_interval();
  if (asks && peer.flows()) {
    peer.for_each_rail([](Rail& rail) { rail.ping_due = usable(rail); });
    ready_.mark(peer);
  }
  alarms_.check_in(now, look_interval(), peer.alarm);
}

void PeerLifecycle::warn_if_unresponsive(Instant now, const Peer& peer, bool calling) {
  const Duration silence = now - peer.heard_at;
  if (silence < kLongSilence || now < unresponsive_warned_ + kUnresponsiveWarned) return;
  if (!calling && !died(peer)) return;  // the peer may be computing
  unresponsive_warned_ = now;
  const auto seconds = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time).count();
  };
  log().warn("{} has been silent for {} s, and will be given up after {}: {}",
             nic::to_string(peer.command_address), seconds(silence), seconds(config_.peer_timeout),
             calling
                 ? "nothing has ever come from there; does a program listen on that address and "
                   "port, with the same driver and checksum?"
                 : "its host has said that nobody listens there");
}

// A packet that was heard soon after the refusal had been waiting here. Hosts report refusals once
// a second, so it may not be repeated.
bool PeerLifecycle::died(const Peer& peer) const {
  return peer.introduced && peer.refused_at != Instant::min() &&
         peer.refused_at + alarm_interval() >= peer.heard_at;
}

void PeerLifecycle::set_phase(Peer& peer, Phase phase, const char* reason) {
  PULLMAN_DCHECK(peer.phase != Phase::kGone && phase > peer.phase);
  log().debug("peer {}.{}: {}, was {}: {}", peer.id.index, peer.id.generation, name(phase),
              name(peer.phase), reason);
  peer.phase = phase;
}

void PeerLifecycle::disconnect(Instant now, PeerId id) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kGone) return discard(*peer);
  peer->release_when_gone = true;
  peer->news_at = now;
  if (peer->phase == Phase::kConnected) set_phase(*peer, Phase::kClosing, "disconnected");
  arm(now, *peer);
  begin_leaving(now, *peer);
}

void PeerLifecycle::discard_left() {
  for (const PeerId id : left_) {
    if (Peer* peer = peers_.find(id)) discard(*peer);
  }
  left_.clear();
}

void PeerLifecycle::begin_close(Instant now) {
  if (closing_) return;
  closing_ = true;
  endings_.matchers.fail_all_receives(Status::kClosed);
  peers_.for_each([&](Peer& peer) {
    if (peer.phase == Phase::kGone) return;
    if (peer.phase == Phase::kConnected) set_phase(peer, Phase::kClosing, "the engine closes");
    arm(now, peer);
    begin_leaving(now, peer);
  });
}

void PeerLifecycle::begin_leaving(Instant now, Peer& peer) {
  if (peer.phase < Phase::kConnected && peer.outbox.unfinished() == 0 && peer.outbox.idle()) {
    return end(peer, Status::kClosed);
  }
  if (peer.phase != Phase::kClosing || !peer.outbox.idle() || !nothing_to_deliver(peer)) return;
  if (peer.one_sided.pending() != 0 || peer.inbox.is_being_answered()) return;
  if (!peer.flows()) return;
  set_phase(peer, Phase::kFarewell, "all is delivered");
  peer.inbox.withdraw_lacking();
  peer.bye_due = true;
  alarms_.cancel(peer.alarm);
  alarms_.check_in(now, kFarewell, peer.alarm);
  ready_.mark(peer);
}

bool PeerLifecycle::all_gone() const {
  bool all = true;
  peers_.for_each([&](const Peer& peer) { all = all && peer.phase == Phase::kGone; });
  return all;
}

void PeerLifecycle::abort() {
  closing_ = true;
  endings_.matchers.fail_all_receives(Status::kClosed);
  peers_.for_each([&](Peer& peer) {
    if (peer.phase != Phase::kGone) end(peer, Status::kClosed);
    peer.for_each_rail([this](Rail& rail) { endings_.acks.forget(rail); });
  });
}

void PeerLifecycle::abandon(PeerId id) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kGone) return discard(*peer);
  peer->release_when_gone = true;
  end(*peer, Status::kClosed);
}

void PeerLifecycle::end(Peer& peer, Status why) {
  set_phase(peer, Phase::kGone, name(why));
  peer.why = why;
  if (is_failure(why)) {
    failures_ = {.count = failures_.count + 1, .why = why, .address = peer.command_address};
  }
  const DeferredAck& deferred = endings_.acks.deferred();
  if (deferred.rail != nullptr && &deferred.rail->peer == &peer) endings_.acks.drop_deferred();
  ready_.note_packets_returned();
  reclaimer_.take_back_all(peer);
  leave_memory(peer);
  endings_.check.end(peer);
  forget_hello(endings_.resolver, endings_.packets, peer);
  if (peer.hello != nullptr) endings_.packets.give_back(*peer.hello);
  peer.hello = nullptr;
  peer.outbox.fail(why);
  peer.one_sided.fail(why);
  peer.inbox.fail(why);
  endings_.matchers.fail_receives(peer.id, why);
  peer.for_each_rail([this](Rail& rail) { stop_timers(rail); });
  alarms_.cancel(peer.alarm);
  ready_.remove(peer);
  peer.bye_due = false;
  peers_.unindex(peer);
  if (peer.called_us) endings_.accepts.remove_half_open(peer);
  peers_.for_each_at(peer.command_address,
                     [this](Peer& other) { ready_.mark(other); });  // they may call now
  peer.for_each_rail([this](const Rail& rail) {
    endings_.stats.spurious_retransmits += rail.link.spurious();
    endings_.stats.timeouts += rail.link.timeouts();
    endings_.ended.lost += rail.link.packets_lost();
    endings_.ended.lost_after_timeout += rail.link.lost_after_timeout();
  });
  endings_.ended.credit_stalls += peers_.tally_of(peer).credit_stalls;
  if (peer.release_when_gone) left_.push_back(peer.id);
  gone_.push_back(peer.id);
  PULLMAN_DCHECK(is_consistent(peer));
  // Removes those that were discarded since. The others keep their place, by which their slots are
  // freed.
  if (gone_.size() > 2 * config_.max_peers) {
    std::erase_if(gone_, [this](PeerId id) { return peers_.find(id) == nullptr; });
  }
}

void PeerLifecycle::leave_memory(Peer& peer) {
  peer.may_share = false;
  if (peer.memory == nullptr) return;
  peer.memory_due = false;
  if (peer.memory->rail) {
    peer.memory->rail->end();
    peer.memory->rail.reset();
  }
  peer.memory->state = MemoryState::kLeft;
  endings_.memory_peers.remove(peer);
}

void PeerLifecycle::stop_timers(Rail& rail) {
  rail.ping_due = false;
  alarms_.cancel(rail.loss_timer);
  if (rail.peer.rails == nullptr) return;
  RailUpkeep& upkeep = upkeep_of(rail);
  alarms_.cancel(upkeep.timer);
  failover::RailNews::forget(upkeep.news);
}

void PeerLifecycle::discard(Peer& peer) {
  PULLMAN_CHECK(peer.phase == Phase::kGone);
  peer.for_each_rail([this](Rail& rail) {
    endings_.acks.forget(rail);
    endings_.resolver.release(rail);
  });
  std::erase_if(endings_.regions.events(),
                [&](const RemoteEvent& one) { return one.source == peer.id; });
  peers_.remove(peer);
}

void PeerLifecycle::discard_oldest_gone() {
  while (peers_.full() && !gone_.empty()) {
    Peer* oldest = peers_.find(gone_.front());
    gone_.pop_front();
    if (oldest != nullptr) discard(*oldest);
  }
}

void PeerLifecycle::discard_all() {
  for (std::uint32_t i = 0; i < peers_.slots(); ++i) {
    if (Peer* peer = peers_.at(i)) discard(*peer);
  }
}

}  // namespace pullman::engine
