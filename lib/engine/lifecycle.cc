// How time passes and how peers part: timers, silence, BYE. Cold, but for the empty checks.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using channel::PacketState;
using reliability::AckNeed;

void Engine::Impl::handle_timers(Instant now, bool only_acks) {
  for (Packet* packet; !only_acks && (packet = hotel_.evict(now)) != nullptr;) {
    handle_eviction(now, *packet);
  }
  while (Timer* timer = ack_timers_.evict(now)) {
    Rail& rail = rail_of(*timer);
    if (rail.link.ack_need() != AckNeed::kNone && !rail.ack.is_linked()) ack_now_.push_back(rail);
  }
  for (Timer* timer; !only_acks && (timer = alarms_.evict(now)) != nullptr;) {
    Peer& peer = *peers_.at(timer->peer);
    if (timer == &peer.alarm) {
      handle_alarm(now, peer);
    } else if (timer->of_upkeep != 0) {
      handle_rail_due(now, rail_of(*timer));
    } else if (timer->of_check != 0) {
      handle_check_due(now, peer, *timer);
    } else {
      Rail& rail = rail_of(*timer);
      rail.link.handle_loss_due(now);
      collect(now, rail);
    }
  }
}

// Once in a while, while nothing ends: who waits for a peer that may never answer ought to know.
void Engine::Impl::warn_peer_unresponsive(Instant now, const Peer& peer, bool calling) {
  const Duration silence = now - peer.heard_at;
  if (silence < kLongSilence || now < unresponsive_warned_ + kUnresponsiveWarned) return;
  if (!calling && !died(peer)) return;  // it may be computing
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

// A HELLO that got no answer is sent again; anything else overdue is asked about.
void Engine::Impl::handle_eviction(Instant now, Packet& packet) {
  Peer& peer = *peers_.at(packet.peer);
  const bool calling = &packet == peer.hello && peer.phase < Phase::kConnected && !peer.called_us;
  Rail& rail = *peer.rail(packet.rail);
  const std::uint64_t timeouts = rail.link.timeouts();
  const Duration waited = now - packet.sent_at;
  rail.link.handle_eviction(now, packet);
  if (peer.rails != nullptr && rail.link.timeouts() != timeouts) {
    handle_rail_silence(now, rail, waited);
  }
  arm(now, peer);  // whatever it was: it must not be asked about for ever
  repeat_nics(packet, peer);
  warn_peer_unresponsive(now, peer, calling);
  if (!calling) {
    doubt(now, peer);
    if (peer.flows()) mark_ready(peer);
    return;
  }
  const bool in_vain =
      rail.link.timeouts() >= kTimeoutsBeforeOther && now - peer.heard_at >= kTimeBeforeOther;
  const bool moved = in_vain && try_next_nic(peer);
  if (!moved && packet.in_channel) return;
  rail.link.take_probe();
  if (moved) return;
  rail.link.abandon(packet);
  packet.state = PacketState::kQueued;
  call(now, peer);
}

bool Engine::Impl::has_pending(const Peer& peer) const {
  return peer.phase < Phase::kConnected || !peer.outbox.idle() || in_flight(peer) > 0 ||
         peer.inbox.expects_more() || peer.bye_due ||
         (peer.rails != nullptr && !peer.rails->evacuated.empty()) || peer.one_sided.asked() != 0 ||
         receives_from(peer.id);
}

std::size_t Engine::Impl::in_flight(const Peer& peer) const {
  std::size_t packets = 0;
  peer.for_each_rail([&](const Rail& rail) {
    if (usable(rail)) packets += rail.link.in_flight();  // elsewhere are probes only
  });
  return packets;
}

// No packet is in flight or to be sent again.
bool Engine::Impl::nothing_to_deliver(const Peer& peer) const {
  bool nothing = in_flight(peer) == 0;
  peer.for_each_rail([&](const Rail& rail) { nothing = nothing && rail.link.lost().empty(); });
  return nothing && (peer.rails == nullptr || peer.rails->evacuated.empty());
}

// Something is to be delivered that is no question.
bool Engine::Impl::has_pending_tx(const Peer& peer) const {
  bool any = peer.rails != nullptr && !peer.rails->evacuated.empty();
  peer.for_each_rail([&](const Rail& rail) {
    const auto& window = rail.link.window();
    any = any || !rail.link.lost().empty();
    for (auto n = window.floor(); n < window.next() && !any; ++n) {
      const Packet* packet = const_cast<Rail&>(rail).link.find(n);
      any = packet != nullptr && !packet->is_probe;
    }
  });
  return any;
}

// The alarm looks in eight times per timeout, so that silence is noticed soon after it is too long.
Duration Engine::Impl::alarm_timeout() const {
  return config_.peer_timeout / 8;
}

// And while somebody waits, sooner: the peer may be dead.
Duration Engine::Impl::look() const {
  return std::min(alarm_timeout(), kLook);
}

// There is no place for another, and some may have died while nothing was pending with them: who
// does not answer ends as if there had been. Not while callers who have proved nothing have places:
// those go first.
void Engine::Impl::ask_idle_peers(Instant now) {
  if (now < idle_peers_due_) return;
  idle_peers_due_ = now + alarm_timeout();
  peers_.for_each([&](Peer& peer) {
    if (peer.alarm.checked_in() || !peer.flows()) return;
    arm(now, peer);
    peer.for_each_rail([](Rail& rail) { rail.ping_due = usable(rail); });
    mark_ready(peer);
  });
}

// Operations became pending with a peer that had none: from now on silence counts.
void Engine::Impl::arm(Instant now, Peer& peer) {
  if (peer.alarm.checked_in() || peer.phase == Phase::kGone) return;
  set_heard(peer, std::max(peer.heard_at, now));
  peer.news_at = std::max(peer.news_at, now);
  if (peer.rails != nullptr && peer.rails->resting) wake_rails(now, peer);
  alarms_.check_in(now, look(), peer.alarm);
}

void Engine::Impl::handle_alarm(Instant now, Peer& peer) {
  if (peer.phase == Phase::kFarewell) return end_peer(peer, Status::kClosed);
  if (peer.phase == Phase::kGone || !has_pending(peer)) return;
  // While nobody called progress() we neither asked nor listened: that time is not the peer's
  // silence. So it takes eight looks at least, however rarely the program comes.
  const Duration late = now - peer.alarm.due;
  set_heard(peer, std::min(now, peer.heard_at + late));
  peer.news_at = std::min(now, peer.news_at + late);
  if (peer.refused_at != Instant::min()) peer.refused_at = std::min(now, peer.refused_at + late);
  const bool silent = now - peer.heard_at >= config_.peer_timeout;
  // A peer that answers probes but acknowledges nothing else cannot be reached either.
  const bool fruitless = now - peer.news_at >= config_.peer_timeout && has_pending_tx(peer);
  if (silent || (fruitless && peer.phase >= Phase::kConnected)) {
    return end_peer(peer, died(peer) ? Status::kPeerDied : Status::kUnreachable);
  }
  // It answers, but takes nothing more of what we have to deliver before we may leave.
  if (peer.phase == Phase::kClosing && now - peer.news_at >= config_.peer_timeout) {
    return end_peer(peer, Status::kTimedOut);
  }
  if (in_flight(peer) == 0) {
    if (peer.phase != Phase::kClosing) peer.news_at = now;
    if (peer.flows() && now - peer.heard_at >= look()) {
      peer.for_each_rail([](Rail& rail) { rail.ping_due = usable(rail); });
      mark_ready(peer);
    }
  }
  alarms_.check_in(now, look(), peer.alarm);
}

// Whether it is the process and not the network that is gone: since the last that was heard of the
// peer its host has said that nobody listens there. Anybody can say so in the host's name, so it
// ends nothing: it gives what ends anyway its name. What was heard soon after had been waiting
// here; hosts say such things once a second, so it may not be said again.
bool Engine::Impl::died(const Peer& peer) const {
  return peer.introduced && peer.refused_at != Instant::min() &&
         peer.refused_at + alarm_timeout() >= peer.heard_at;
}

void Engine::Impl::update_loss_timer(Instant now, Rail& rail) {
  const Instant due = rail.link.next_loss_due();
  if (rail.loss_timer.checked_in()) {
    if (due >= rail.loss_timer.due && due != kNever) return;  // it will look again then
    alarms_.check_out(rail.loss_timer);
  }
  if (due != kNever) alarms_.check_in(now, std::max(due - now, Duration(1)), rail.loss_timer);
}

void Engine::Impl::set_phase(Peer& peer, Phase phase) {
  PULLMAN_DCHECK(peer.phase != Phase::kGone && phase > peer.phase);
  peer.phase = phase;
}

void Engine::Impl::disconnect(Instant now, PeerId id) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kGone) return discard(*peer);
  peer->release_when_gone = true;
  peer->news_at = now;
  if (peer->phase == Phase::kConnected) set_phase(*peer, Phase::kClosing);
  arm(now, *peer);
  begin_leaving(now, *peer);
}

void Engine::Impl::discard_leaving() {
  for (const PeerId id : leaving_) {
    if (Peer* peer = peers_.find(id)) discard(*peer);
  }
  leaving_.clear();
}

void Engine::Impl::begin_close(Instant now) {
  if (closing_) return;
  closing_ = true;
  fail_all_receives(Status::kClosed);
  peers_.for_each([&](Peer& peer) {
    if (peer.phase == Phase::kGone) return;
    if (peer.phase == Phase::kConnected) set_phase(peer, Phase::kClosing);
    arm(now, peer);
    begin_leaving(now, peer);
  });
}

// Once everything accepted is acked: say good-bye, and give the answer a bounded while.
void Engine::Impl::begin_leaving(Instant now, Peer& peer) {
  if (peer.phase < Phase::kConnected && peer.outbox.unfinished() == 0 && peer.outbox.idle()) {
    return end_peer(peer, Status::kClosed);
  }
  if (peer.phase != Phase::kClosing || !peer.outbox.idle() || !nothing_to_deliver(peer)) return;
  if (peer.one_sided.asked() != 0 || peer.inbox.is_being_answered()) return;
  if (!peer.flows()) return;
  set_phase(peer, Phase::kFarewell);
  peer.inbox.withdraw_lacking();
  peer.bye_due = true;
  if (peer.alarm.checked_in()) alarms_.check_out(peer.alarm);
  alarms_.check_in(now, kFarewell, peer.alarm);
  mark_ready(peer);
}

// The peer will send nothing more. It says BYE last: everything it sent has arrived, unless it has
// given up. What it has of ours it says itself, for its last ACKs may be lost, or under way on
// other rails.
void Engine::Impl::handle_bye(Peer& peer) {
  take_back_packets(peer);
  peer.outbox.handle_bye(bye_);
  // Both sides said it: neither waits for the other's last ACK.
  end_peer(peer, peer.phase == Phase::kFarewell ? Status::kClosed : Status::kPeerClosed);
}

std::size_t Engine::Impl::fail_receives(PeerId from, Status why) {
  std::size_t failed = 0;
  for_each_matcher([&](message::Matcher& matcher) {
    while (Request* posted = matcher.posted_for(from)) {
      matcher.remove(*posted);
      posted->finish(why, 0);
      ++failed;
    }
  });
  return failed;
}

void Engine::Impl::fail_all_receives(Status why) {
  for_each_matcher([&](message::Matcher& matcher) {
    while (Request* posted = matcher.any_posted()) {
      matcher.remove(*posted);
      posted->finish(why, 0);
    }
  });
}

bool Engine::Impl::drained() const {
  bool all = true;
  peers_.for_each([&](Peer& peer) { all = all && peer.phase == Phase::kGone; });
  return all && ack_now_.empty() && posted_ == 0;
}

void Engine::Impl::abort() {
  closing_ = true;
  fail_all_receives(Status::kClosed);
  ack_now_.clear();
  peers_.for_each([&](Peer& peer) {
    if (peer.phase != Phase::kGone) end_peer(peer, Status::kClosed);
    peer.for_each_rail([this](Rail& rail) {
      if (rail.ack_timer.checked_in()) ack_timers_.check_out(rail.ack_timer);
    });
  });
  ack_now_.clear();
}

// Closes, although not all is delivered: those who hear us are told so if there is room, and by the
// data channel of the rail that small messages take, behind what they have not read yet. Nobody
// stays who could tell them again, so they are told twice: a packet may be lost.
void Engine::Impl::close_abortively(Instant now) {
  begin_close(now);
  for (int i = 0; i < kGoodByes; ++i) {
    peers_.for_each([&](Peer& peer) {
      if (!peer.flows()) return;
      Rail& rail = *peer.rail(peer.rails == nullptr ? 0 : peer.rails->favourite);
      if (!rail.resolved() || !rail.link.has_space()) return;
      peer.bye_due = true;
      send_control_frames(now, rail, ChannelKind::kData);
    });
    flush();
  }
  abort();
}

// At once, and it is not told.
void Engine::Impl::abandon(PeerId id) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return;
  if (peer->phase == Phase::kGone) return discard(*peer);
  peer->release_when_gone = true;
  end_peer(*peer, Status::kClosed);
}

// Everything pending with this peer finishes with `why`, once; every packet goes home.
void Engine::Impl::end_peer(Peer& peer, Status why) {
  set_phase(peer, Phase::kGone);
  peer.why = why;
  if (deferred_ack_.rail != nullptr && &deferred_ack_.rail->peer == &peer)
    deferred_ack_.rail = nullptr;
  blocked_on_pool_ = 0;  // its packets go back
  take_back_packets(peer);
  end_checking(peer);
  forget_said(peer);
  if (peer.hello != nullptr) packets_.give_back(*peer.hello);
  peer.hello = nullptr;
  peer.outbox.fail(why);
  peer.one_sided.fail(why);
  peer.inbox.fail(why);
  fail_receives(peer.id, why);
  peer.for_each_rail([this](Rail& rail) { stop_timers(rail); });
  if (peer.alarm.checked_in()) alarms_.check_out(peer.alarm);
  if (peer.ready.is_linked()) ready_.erase(ready_.iterator_to(peer));
  peer.bye_due = false;
  peers_.unindex(peer);
  if (peer.called_us) leave_half_open(peer);
  peers_.for_each_at(peer.command_address, [this](Peer& other) { mark_ready(other); });  // may call
  peer.for_each_rail([this](const Rail& rail) {
    stats_.spurious_retransmits += rail.link.spurious();
    stats_.timeouts += rail.link.timeouts();
  });
  if (peer.release_when_gone) leaving_.push_back(peer.id);
  gone_.push_back(peer.id);
  // Some were discarded since. Those that were not keep their place: their slots are freed by it.
  if (gone_.size() > 2 * config_.max_peers) {
    std::erase_if(gone_, [this](PeerId id) { return peers_.find(id) == nullptr; });
  }
}

void Engine::Impl::take_back_packets(Peer& peer) {
  peer.for_each_rail([this](Rail& rail) { take_back_packets(rail); });
  if (peer.rails != nullptr) take_back(peer, peer.rails->evacuated);
}

void Engine::Impl::take_back_packets(Rail& rail) {
  Peer& peer = rail.peer;
  const auto end = rail.link.window().next();
  for (auto n = rail.link.window().floor(); n < end && rail.link.in_flight() > 0; ++n) {
    if (Packet* packet = rail.link.find(n)) {
      rail.link.abandon(*packet);
      if (packet->in_channel) withdraw(rail, *packet);
      if (packet == peer.hello) peer.hello = nullptr;
      peer.outbox.abandon(*packet);
    }
  }
  take_back(peer, rail.link.lost());
  take_back(peer, rail.link.acked());
}

void Engine::Impl::take_back(Peer& peer, channel::PacketQueue& queue) {
  while (!queue.empty()) {
    Packet& packet = queue.front();
    queue.pop_front();
    if (packet.in_channel) withdraw(*peer.rail(packet.rail), packet);
    if (&packet == peer.hello) peer.hello = nullptr;
    peer.outbox.abandon(packet);
  }
}

void Engine::Impl::stop_timers(Rail& rail) {
  rail.ping_due = false;
  if (rail.loss_timer.checked_in()) alarms_.check_out(rail.loss_timer);
  if (rail.peer.rails == nullptr) return;
  RailUpkeep& care = upkeep_of(rail);
  if (care.timer.checked_in()) alarms_.check_out(care.timer);
  failover::RailNews::forget(care.news);
}

void Engine::Impl::withdraw(const Rail& rail, Packet& packet) {
  module_of(rail).channel(packet.channel).withdraw(packet);
}

// A packet that was acked or is not needed again.
void Engine::Impl::release(const Rail& rail, Packet& packet) {
  blocked_on_pool_ = 0;
  if (packet.in_channel) withdraw(rail, packet);
  packets_.give_back(packet);
}

// Frees a gone peer's slot; what it sent and nobody received goes with it.
void Engine::Impl::discard(Peer& peer) {
  PULLMAN_CHECK(peer.phase == Phase::kGone);
  peer.for_each_rail([this](Rail& rail) {
    if (rail.ack.is_linked()) ack_now_.erase(ack_now_.iterator_to(rail));
    if (rail.ack_timer.checked_in()) ack_timers_.check_out(rail.ack_timer);
    if (rail.command_to != nic::kInvalidDestination) command(rail).port().forget(rail.command_to);
    if (rail.data_to != nic::kInvalidDestination) data(rail).port().forget(rail.data_to);
  });
  std::erase_if(regions_.events(), [&](const RemoteEvent& one) { return one.source == peer.id; });
  peers_.remove(peer);
}

}  // namespace pullman::engine
