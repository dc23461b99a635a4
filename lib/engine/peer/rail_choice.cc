#include "engine/peer/rail_choice.h"

#include <algorithm>
#include <array>
#include <optional>

#include "failover/striping.h"

namespace pullman::engine {
namespace {

using Loads = std::array<failover::Load, wire::kMaxRails>;

// What makes a rail better than another, the most important first: it is up and not suspect, it is
// no stream, it is not relayed, and it is one of the pairing and not just the one on which the
// peers happened to meet. Nothing if the rail cannot carry anything.
using Rank = std::optional<std::array<bool, 4>>;

Rank rank_of(const Rail& rail, const Rails& rails) {
  const RailUpkeep& upkeep = *rails.upkeep[rail.number];
  if (!upkeep.health.usable() || !rail.resolved()) return std::nullopt;
  return {
      {upkeep.health.up(), !upkeep.stream, !upkeep.relayed, rail.number != 0 || !rails.spare_home}};
}

// Returns what `choose` picks among the rails of the best rank there is; null if it picks none.
template <typename Choose>
Rail* choose_rail(Peer& peer, std::uint32_t full_ports, Choose choose) {
  Rank rank;
  peer.for_each_rail([&](const Rail& rail) { rank = std::max(rank, rank_of(rail, *peer.rails)); });
  Loads loads;
  peer.for_each_rail([&](const Rail& rail) {
    failover::Load& load = loads[rail.number];
    const bool candidate = rank && rank_of(rail, *peer.rails) == rank;
    const bool full = (full_ports >> rail.module & 1) != 0 || !rail.link.lost().empty();
    const reliability::Rtt& rtt = rail.link.rtt();
    // Where nothing is in flight the queue that earlier packets met is gone.
    load.rtt = rail.link.in_flight() == 0 ? std::min(rtt.smoothed(), rtt.latest()) : rtt.smoothed();
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

Rail* quickest_rail(Peer& peer, std::uint32_t full_ports) {
  return choose_rail(peer, full_ports, [&](const Loads& loads) {
    return failover::rail_for_small(loads, peer.rails->small_rail);
  });
}

}  // namespace

Rail* rail_for_bulk(Peer& peer, std::uint32_t full_ports) {
  const std::uint64_t bytes = peer.outbox.bytes_to_cut();
  const std::uint64_t left = bytes / std::max<std::size_t>(peer.outbox.packet_bytes(), 1) + 1 +
                             peer.rails->evacuated.size();
  return choose_rail(peer, full_ports,
                     [&](const Loads& loads) { return failover::rail_for_bulk(loads, left); });
}

bool waits_for_port(Peer& peer, bool small, std::uint32_t full_ports) {
  if (full_ports == 0) return false;
  return (small ? quickest_rail(peer, 0) : rail_for_bulk(peer, 0)) != nullptr;
}

Sends rails_can_send(Peer& peer) {
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
  // Chunks may wait for a rail that is faster than those with room. An ALLOWANCE, which is carried
  // by what leaves, then waits with them.
  if ((left || peer.outbox.has_packets()) && rail_for_bulk(peer, 0) != nullptr) {
    return in_flight == 0 ? Sends::kSomething : Sends::kPerhaps;
  }
  const bool carried = !left && has_control(peer) && quickest_rail(peer, 0) != nullptr;
  return carried ? Sends::kPerhaps : Sends::kNothing;
}

Rail* rail_for_small(Peer& peer, std::uint32_t full_ports) {
  Rail* rail = quickest_rail(peer, full_ports);
  if (rail != nullptr) peer.rails->small_rail = rail->number;
  return rail;
}

// Small messages may leave by a NIC if the memory ends, so their packets are no longer than it
// carries.
void settle_sizes(Peer& peer) {
  std::size_t least = peer.home.packet_bytes;
  if (peer.rails == nullptr) {
    peer.outbox.set_packet_bytes(least);
  } else {
    peer.for_each_rail([&](const Rail& rail) {
      if (usable(rail)) least = std::min<std::size_t>(least, rail.packet_bytes);
    });
  }
  if (peer.memory_rail() != nullptr) least = std::min(least, MemoryRail::kMaxSmallPacket);
  peer.outbox.set_small_bytes(least);
}

void note_sent(const Rail& rail, std::size_t packets, std::size_t bytes) {
  RailUpkeep& upkeep = upkeep_of(rail);
  upkeep.packets_sent += packets;
  upkeep.bytes_sent += bytes;
}

bool fills_no_burst(const Rail& rail) {
  const std::size_t in_burst = data(rail).packets_in_burst(rail.packet_bytes);
  return 2 * rail.link.permits() < in_burst && rail.link.in_flight() >= in_burst;
}

std::size_t share_of_turn(const Rail& rail) {
  const std::size_t share = data(rail).port().limits().packets_per_turn;
  const std::size_t packets = rail.peer.outbox.packets_left(message::Outbox::Heads::kFull);
  const std::size_t few = std::min<std::size_t>(32, share / 2);
  const bool ends = packets > share && packets <= share + few;
  return ends ? packets : share;
}

Sends home_can_send(const Peer& peer) {
  const Rail& rail = peer.home;
  if (can_tend(rail)) return Sends::kSomething;
  if (!rail.link.may_send()) return Sends::kNothing;
  if (peer.outbox.queued_packets() != 0 || has_pending_frames(peer)) return Sends::kSomething;
  if (peer.outbox.has_packets()) {
    return fills_no_burst(rail) ? Sends::kPerhaps : Sends::kSomething;
  }
  return has_control(peer) ? Sends::kPerhaps : Sends::kNothing;
}

}  // namespace pullman::engine
