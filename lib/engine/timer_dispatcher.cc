#include "engine/timer_dispatcher.h"

#include <algorithm>

#include "base/log.h"

namespace pullman::engine {

void TimerDispatcher::expire(Instant now, bool only_acks) {
  for (Packet* packet; !only_acks && (packet = hotel_.evict(now)) != nullptr;) {
    handle_eviction(now, *packet);
  }
  acks_.expire(now, peers_);
  for (Timer* timer; !only_acks && (timer = alarms_.evict(now)) != nullptr;) handle(now, *timer);
}

void TimerDispatcher::handle(Instant now, const Timer& timer) {
  Peer& peer = *peers_.at(timer.peer);
  switch (timer.purpose()) {
    case TimerPurpose::kAlarm:
      return handle_alarm(now, peer);
    case TimerPurpose::kRailUpkeep:
      exchange_.handle_due(now, peer);
      return rails_.handle_due(now, peers_.rail_of(timer));
    case TimerPurpose::kCheckAsking:
      return check_.handle_asking_due(now, peer);
    case TimerPurpose::kCheckAnswers:
      return check_.handle_answers_due(now, peer);
    case TimerPurpose::kLiveness:
      return liveness_.handle_due(now, peer);
    case TimerPurpose::kLoss: {
      Rail& rail = peers_.rail_of(timer);
      rail.link.handle_loss_due(now);
      return ack_handler_.collect(now, rail);
    }
    case TimerPurpose::kAck:
      break;  // the ACK scheduler's own
  }
}

// Once in a while, while nothing ends: a user that waits for a peer that may never answer ought to
// know.
void TimerDispatcher::warn_peer_unresponsive(Instant now, const Peer& peer, bool calling) {
  const Duration silence = now - peer.heard_at;
  if (silence < kLongSilence || now < unresponsive_warned_ + kUnresponsiveWarned) return;
  if (!calling && !lifecycle_.died(peer)) return;  // it may be computing
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
void TimerDispatcher::handle_eviction(Instant now, Packet& packet) {
  Peer& peer = *peers_.at(packet.peer);
  const bool calling = &packet == peer.hello && peer.phase < Phase::kConnected && !peer.called_us;
  Rail& rail = *peer.rail(packet.rail);
  const std::uint64_t timeouts = rail.link.timeouts();
  const Duration waited = now - packet.sent_at;
  rail.link.handle_eviction(now, packet);
  if (peer.rails != nullptr && rail.link.timeouts() != timeouts)
    rails_.handle_silence(now, rail, waited);
  lifecycle_.arm(now, peer);  // whatever it was: it must not be asked about for ever
  reclaimer_.repeat_nics(packet, peer);
  warn_peer_unresponsive(now, peer, calling);
  if (!calling) {
    liveness_.probe_if_silent(now, peer);
    if (peer.flows()) ready_.mark(peer);
    return;
  }
  const bool unanswered =
      rail.link.timeouts() >= kTimeoutsBeforeOther && now - peer.heard_at >= kTimeBeforeOther;
  const bool moved = unanswered && handshake_.try_next_nic(peer);
  if (!moved && packet.in_channel) return;
  rail.link.take_probe();
  if (moved) return;
  rail.link.abandon(packet);
  packet.state = channel::PacketState::kQueued;
  handshake_.call(now, peer);
}

void TimerDispatcher::handle_alarm(Instant now, Peer& peer) {
  if (peer.phase == Phase::kFarewell) return lifecycle_.end(peer, Status::kClosed);
  if (peer.phase == Phase::kGone || !lifecycle_.has_pending(peer)) return;
  // While nobody called progress() we neither asked nor listened: that time is not the peer's
  // silence. So it takes eight looks at least, however rarely the program comes.
  const Duration late = now - peer.alarm.due;
  set_heard(peer, std::min(now, peer.heard_at + late));
  peer.news_at = std::min(now, peer.news_at + late);
  if (peer.refused_at != Instant::min()) peer.refused_at = std::min(now, peer.refused_at + late);
  const bool silent = now - peer.heard_at >= config_.peer_timeout;
  // A peer that answers probes but acknowledges nothing else cannot be reached either.
  const bool stalled = now - peer.news_at >= config_.peer_timeout && has_unacked_data(peer);
  if (silent || (stalled && peer.phase >= Phase::kConnected)) {
    return lifecycle_.end(peer, lifecycle_.died(peer) ? Status::kPeerDied : Status::kUnreachable);
  }
  // It answers, but takes nothing more of what we have to deliver before we may leave.
  if (peer.phase == Phase::kClosing && now - peer.news_at >= config_.peer_timeout) {
    return lifecycle_.end(peer, Status::kTimedOut);
  }
  if (in_flight(peer) == 0) {
    if (peer.phase != Phase::kClosing) peer.news_at = now;
    if (peer.flows() && now - peer.heard_at >= lifecycle_.look_interval()) {
      peer.for_each_rail([](Rail& rail) { rail.ping_due = usable(rail); });
      ready_.mark(peer);
    }
  }
  alarms_.check_in(now, lifecycle_.look_interval(), peer.alarm);
}

}  // namespace pullman::engine
