#include "engine/peer/rail_view.h"

#include "engine/peer/peer_queries.h"
#include "nic/address.h"

namespace pullman::engine {
namespace {

void show_finding(Instant now, const Rail& rail, RailView& view) {
  if (rail.peer.checking == nullptr) return;
  const Asking& asking = rail.peer.checking->asking;
  if ((asking.outdated & bit_of(rail)) != 0) return;
  view.check = asking.found[rail.number];
  if (view.check != RailFinding::kNotChecked) view.checked_ago = now - asking.found_at;
}

// Shows what only a rail among several has. A peer's only rail has no state of its own: it works,
// or the peer is gone.
void show_state(Instant now, const Rail& rail, RailView& view) {
  if (rail.peer.rails == nullptr) {
    view.state = rail.peer.flows() ? RailState::kUp : RailState::kDown;
    view.reason = rail.peer.flows() ? RailReason::kAnswers : RailReason::kNew;
    return;
  }
  const RailUpkeep& upkeep = upkeep_of(rail);
  view.state = upkeep.health.state();
  view.reason = upkeep.health.reason();
  view.in_state = now - upkeep.health.since();
  view.bytes_sent = upkeep.bytes_sent;
  view.packets_sent = upkeep.packets_sent;
  view.evacuated = upkeep.evacuated;
  view.times_left = upkeep.times_left;
}

}  // namespace

RailView rail_view(Instant now, const Rail& rail) {
  RailView view = rail_state(now, rail);
  view.nic = rail.nic->device().name;
  view.local = nic::to_string(rail.nic->channel(ChannelKind::kCommand).port().address());
  view.remote = nic::to_string(rail.remote);
  return view;
}

RailView rail_state(Instant now, const Rail& rail) {
  RailView view;
  view.number = rail.number;
  view.stream = rail.nic->device().stream;
  view.rtt = rail.link.rtt().smoothed();
  view.packet_bytes = rail.link.path().bytes();
  view.window = rail.link.congestion_window();
  view.in_flight = rail.link.in_flight();
  view.packets_lost = rail.link.packets_lost();
  show_finding(now, rail, view);
  show_state(now, rail, view);
  return view;
}

RailView memory_view(MemoryLink& memory) {
  RailView view;
  view.number = wire::kMaxRails;
  view.memory = true;
  view.nic = "memory";
  view.state = RailState::kUp;
  view.reason = RailReason::kAnswers;
  view.packet_bytes = memory.rail->max_packet();
  view.in_flight = static_cast<std::uint32_t>(memory.rail->in_flight());
  view.packets_sent = memory.sent;
  return view;
}

}  // namespace pullman::engine
