// Serves a peer with several rails: one is chosen for each step.
#include <algorithm>

#include "engine/transmitter.h"

namespace pullman::engine {
namespace {

// The number of chunks for which a rail is chosen at a time: a burst of kernel UDP.
constexpr std::size_t kStripe = 44;

// Returns whether the rail is passed over for another because of an old round trip, perhaps one of
// a process that did not run. Such a rail is measured again.
bool looks_slow(Instant now, Rail& rail) {
  if (rail.link.in_flight() != 0 || !rail.link.rtt_is_stale(now)) return false;
  bool slower = false;
  rail.peer.for_each_rail([&](const Rail& other) {
    slower = slower || (usable(other) && other.link.rtt().smoothed() < rail.link.rtt().smoothed());
  });
  return slower;
}

}  // namespace

bool Transmitter::serve_rails(Instant now, Peer& peer) {
  bool more = false;
  peer.for_each_rail([&](Rail& rail) { tend_rail(now, rail, more); });
  const Next evacuated = resend_evacuated(now, peer);
  if (evacuated != Next::kGoOn) return more || evacuated == Next::kBlocked;
  const std::size_t share = share_of_turn(*peer.rail(peer.rails->small_rail));
  for (std::size_t sent = 0; sent < share; ++sent) {
    const bool small = peer.outbox.queued_packets() > 0 || has_control(peer);
    if (!small && !peer.outbox.has_packets()) return more;
    Rail* rail = small ? rail_for_small(peer, ports_full_) : rail_for_bulk(peer, ports_full_);
    if (rail == nullptr) {
      if (waits_for_port(peer, small, ports_full_)) return true;
      note_if_credit_stalls(peer);
      return more;
    }
    peer.outbox.set_packet_bytes(rail->packet_bytes);
    const std::size_t most = std::min(share, sent + kStripe);
    if (send_next(now, *rail, most, sent) == Next::kBlocked) {
      return more || can_send(peer) != Sends::kNothing;
    }
  }
  return more || (engine::has_work(peer) && can_send(peer) != Sends::kNothing);
}

// Sends a rail's own probes, and retransmits what it lost. Sets `more` if not all of that could
// leave now.
void Transmitter::tend_rail(Instant now, Rail& rail, bool& more) {
  if (!rail.resolved()) {
    rail.link.take_probe();
    rail.ping_due = false;
    return;
  }
  if (!usable(rail)) {
    rail.link.take_probe();  // only probes are in flight there
    if (rail.ping_due && !send_probe(now, rail)) more = true;
    return;
  }
  if (looks_slow(now, rail)) rail.ping_due = true;
  if (!send_probe(now, rail) || !resend_lost(now, rail)) more = true;
  if (rail.link.path().probe_due(now)) [[unlikely]]
    path_sizer_.send_probe(now, rail);
}

// Sends the packets of rails that were left before anything else, as fast as the other rails take
// them. If none has room, an ACK, or a rail that comes back, makes the peer ready again.
Transmitter::Next Transmitter::resend_evacuated(Instant now, Peer& peer) {
  auto& evacuated = peer.rails->evacuated;
  while (!evacuated.empty()) {
    Rail* rail = rail_for_bulk(peer, ports_full_);
    if (rail == nullptr)
      return waits_for_port(peer, false, ports_full_) ? Next::kBlocked : Next::kNothing;
    Packet& packet = evacuated.front();
    evacuated.pop_front();
    rail->link.lost().push_back(packet);
    if (!resend_lost(now, *rail)) return Next::kBlocked;
  }
  return Next::kGoOn;
}

}  // namespace pullman::engine
