#include "engine/timer_dispatcher.h"

#include <algorithm>

#include "base/check.h"

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
      return lifecycle_.handle_alarm(now, peer);
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
    case TimerPurpose::kNone:
    case TimerPurpose::kAck:
      PULLMAN_CHECK(false);  // an unnamed timer, or one of the ACK scheduler
  }
}

// Sends a HELLO again that got no answer; if any other packet is overdue, the link probes.
void TimerDispatcher::handle_eviction(Instant now, Packet& packet) {
  Peer& peer = *peers_.at(packet.peer);
  const bool calling = &packet == peer.hello && peer.phase < Phase::kConnected && !peer.called_us;
  Rail& rail = *peer.rail(packet.rail);
  const std::uint64_t timeouts = rail.link.timeouts();
  const Duration waited = now - packet.sent_at;
  rail.link.handle_eviction(now, packet);
  if (peer.rails != nullptr && rail.link.timeouts() != timeouts)
    rails_.handle_silence(now, rail, waited);
  lifecycle_.arm(now, peer);  // the alarm ends a peer that never answers
  reclaimer_.repeat_nics(packet, peer);
  lifecycle_.warn_if_unresponsive(now, peer, calling);
  if (calling) return handshake_.handle_call_overdue(now, peer, packet);
  liveness_.probe_if_silent(now, peer);
  if (peer.flows()) ready_.mark(peer);
}

}  // namespace pullman::engine
