// Which rail carries what, where a peer has several of them.
#include <algorithm>

#include "engine/engine_impl.h"
#include "failover/striping.h"

namespace pullman::engine {
namespace {

// Chunks for which a rail is chosen at a time: a burst of kernel UDP.
constexpr std::size_t kStripe = 44;

using Loads = std::array<failover::Load, wire::kMaxRails>;

// Rails of which one must do: those that are up before those that are suspect, datagrams before
// streams, those of the pairing before the one the peers happened to meet on.
int rank_of(const Rail& rail, const Rails& rails) {
  const RailUpkeep& care = *rails.care[rail.number];
  if (!care.health.usable() || !rail.resolved()) return -1;
  return (care.health.up() ? 4 : 0) + (care.stream ? 0 : 2) +
         (rail.number == 0 && rails.spare_home ? 0 : 1);
}

}  // namespace

bool Engine::Impl::rails_have_work(const Peer& peer) const {
  bool any = peer.rails->reports_due || !peer.rails->evacuated.empty();
  peer.for_each_rail([&](const Rail& rail) { any = any || has_work(rail); });
  return any;
}

// As serve(), with a rail chosen for each step.
bool Engine::Impl::serve_rails(Instant now, Peer& peer) {
  bool more = false;
  peer.for_each_rail([&](Rail& rail) { tend_rail(now, rail, more); });
  const Next evacuated = resend_evacuated(now, peer);
  if (evacuated != Next::kGoOn) return more || evacuated == Next::kBlocked;
  const std::size_t share = share_of_turn(*peer.rail(peer.rails->favourite));
  for (std::size_t sent = 0; sent < share; ++sent) {
    const bool small = peer.outbox.queued_packets() > 0 || has_control(peer);
    if (!small && !peer.outbox.has_packets()) return more;
    Rail* rail = small ? rail_for_small(peer) : rail_for_bulk(peer, ports_full_);
    if (rail == nullptr) return more || waits_for_port(peer, small);
    peer.outbox.set_packet_bytes(rail->packet_bytes);
    const std::size_t most = std::min(share, sent + kStripe);
    if (send_next(now, *rail, most, sent) == Next::kBlocked) {
      return more || can_send(peer) != Sends::kNothing;
    }
  }
  return more || (has_work(peer) && can_send(peer) != Sends::kNothing);
}

// What a rail has to do for itself: to ask, and to send again what it lost. Sets `more` if it could
// not do all of it now.
void Engine::Impl::tend_rail(Instant now, Rail& rail, bool& more) {
  if (!rail.resolved()) {
    rail.link.take_probe();
    rail.ping_due = false;
    return;
  }
  if (!usable(rail)) {
    rail.link.take_probe();  // what is in flight there are questions themselves
    if (rail.ping_due && !send_probe(now, rail)) more = true;
    return;
  }
  if (!send_probe(now, rail) || !resend_lost(now, rail)) more = true;
  if (rail.link.path().probe_due(now)) [[unlikely]]
    send_path_probe(now, rail);
}

// What was on rails that were left goes first, as fast as the others take it. An ack, or a rail
// that comes back, makes the peer ready if none has room.
Engine::Impl::Next Engine::Impl::resend_evacuated(Instant now, Peer& peer) {
  auto& evacuated = peer.rails->evacuated;
  while (!evacuated.empty()) {
    Rail* rail = rail_for_bulk(peer, ports_full_);
    if (rail == nullptr) return waits_for_port(peer, false) ? Next::kBlocked : Next::kNothing;
    Packet& packet = evacuated.front();
    evacuated.pop_front();
    rail->link.lost().push_back(packet);
    if (!resend_lost(now, *rail)) return Next::kBlocked;
  }
  return Next::kGoOn;
}

// Those that may be used now: of the best rank there is. `full`: of the NICs, see ports_full_.
template <typename Choose>
Rail* Engine::Impl::choose_rail(Peer& peer, std::uint32_t full_ports, Choose choose) {
  int rank = 0;
  peer.for_each_rail([&](const Rail& rail) { rank = std::max(rank, rank_of(rail, *peer.rails)); });
  Loads loads;
  peer.for_each_rail([&](const Rail& rail) {
    failover::Load& load = loads[rail.number];
    const bool candidate = rank_of(rail, *peer.rails) == rank;
    const bool full = (full_ports >> rail.module & 1) != 0 || !rail.link.lost().empty();
    load.rtt = rail.link.rtt().smoothed();
    load.window = candidate ? rail.link.congestion_window() : 0;
    load.in_flight = rail.link.in_flight();
    load.may_send = candidate && !full && rail.link.may_send();
  });
  for (failover::Load& load : loads) {
    if (&load != loads.data() &&
        peer.rail(static_cast<std::size_t>(&load - loads.data())) == nullptr) {
      load.window = 0;
    }
  }
  const std::size_t chosen = choose(loads);
  return chosen == failover::kNoRail ? nullptr : peer.rail(chosen);
}

Rail* Engine::Impl::rail_for_bulk(Peer& peer, std::uint32_t full_ports) {
  const std::uint64_t bytes = peer.outbox.bytes_to_cut();
  const std::uint64_t left = bytes / std::max<std::size_t>(peer.outbox.packet_bytes(), 1) + 1 +
                             peer.rails->evacuated.size();
  return choose_rail(peer, full_ports,
                     [&](const Loads& loads) { return failover::rail_for_bulk(loads, left); });
}

Rail* Engine::Impl::quickest_rail(Peer& peer, std::uint32_t full_ports) {
  return choose_rail(peer, full_ports, [&](const Loads& loads) {
    return failover::rail_for_small(loads, peer.rails->favourite);
  });
}

// Others have filled the ports of its rails this turn: the next one goes on. Nothing else would ask
// for it where nothing of the peer's is in flight.
bool Engine::Impl::waits_for_port(Peer& peer, bool small) const {
  if (ports_full_ == 0) return false;
  return (small ? quickest_rail(peer, 0) : rail_for_bulk(peer, 0)) != nullptr;
}

Engine::Impl::Sends Engine::Impl::rails_can_send(Peer& peer) {
  bool some = false;
  std::size_t in_flight = 0;
  peer.for_each_rail([&](const Rail& rail) {
    some = some || (rail.resolved() && (usable(rail) ? can_tend(rail) : rail.ping_due));
    in_flight += rail.link.in_flight();
  });
  if (some) return Sends::kSomething;
  const bool left = !peer.rails->evacuated.empty();
  const bool due = peer.outbox.queued_packets() > 0 || has_pending_frames(peer);
  if (!left && due) {
    return quickest_rail(peer, 0) != nullptr ? Sends::kSomething : Sends::kNothing;
  }
  // Chunks may wait for a rail that is faster than those with room, and then an allowance, which
  // rides on what leaves, waits with them.
  if ((left || peer.outbox.has_packets()) && rail_for_bulk(peer, 0) != nullptr) {
    return in_flight == 0 ? Sends::kSomething : Sends::kPerhaps;
  }
  const bool rides = !left && has_control(peer) && quickest_rail(peer, 0) != nullptr;
  return rides ? Sends::kPerhaps : Sends::kNothing;
}

Rail* Engine::Impl::rail_for_small(Peer& peer) {
  Rail* rail = quickest_rail(peer, ports_full_);
  if (rail != nullptr) peer.rails->favourite = rail->number;
  return rail;
}

// Small messages are packed before it is known which rail they take: the shortest packet of those
// in use will do for all.
void Engine::Impl::settle_sizes(Peer& peer) {
  if (peer.rails == nullptr) {
    peer.outbox.set_packet_bytes(peer.home.packet_bytes);
    peer.outbox.set_small_bytes(peer.home.packet_bytes);
    return;
  }
  std::size_t least = peer.home.packet_bytes;
  peer.for_each_rail([&](const Rail& rail) {
    if (usable(rail)) least = std::min<std::size_t>(least, rail.packet_bytes);
  });
  peer.outbox.set_small_bytes(least);
}

void Engine::Impl::note_sent(const Rail& rail, std::size_t packets, std::size_t bytes) {
  RailUpkeep& care = upkeep_of(rail);
  care.packets_sent += packets;
  care.bytes_sent += bytes;
}

}  // namespace pullman::engine
