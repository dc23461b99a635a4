#include "engine/inspector.h"

#include <fmt/format.h>

#include "engine/peer/rail_choice.h"
#include "engine/peer/rail_view.h"
#include "nic/address.h"

namespace pullman::engine {

PeerState Inspector::peer_state(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  if (peer == nullptr) return PeerState::kUnknown;
  switch (peer->phase) {
    case Phase::kResolving:
    case Phase::kCalling:
    case Phase::kAnswering:
      return PeerState::kConnecting;
    case Phase::kConnected:
      return PeerState::kConnected;
    case Phase::kClosing:
    case Phase::kFarewell:
      return PeerState::kDraining;
    case Phase::kGone:
      return PeerState::kGone;
  }
  return PeerState::kUnknown;
}

Status Inspector::peer_status(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  return peer == nullptr ? Status::kUnknownPeer : peer->why;
}

bool Inspector::is_self(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  if (peer == nullptr) return false;
  if (peer->introduced) return peer->epoch == resources_.epoch;
  return nics_.is_own_port(peer->command_address);
}

bool Inspector::shares_memory(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  return peer != nullptr && peer->memory_rail() != nullptr;
}

std::vector<PeerId> Inspector::connected_peers(std::size_t most) const {
  std::vector<PeerId> out;
  resources_.peers.for_each([&](const Peer& peer) {
    if (peer.phase == Phase::kConnected && out.size() < most) out.push_back(peer.id);
  });
  return out;
}

std::string Inspector::address_of(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  return peer == nullptr ? "?" : nic::to_string(peer->command_address);
}

std::optional<LinkView> Inspector::link(PeerId id) const {
  const Peer* peer = resources_.peers.find(id);
  if (peer == nullptr) return std::nullopt;
  return LinkView{.rtt = peer->home.link.rtt().smoothed(),
                  .packet_bytes = peer->home.link.path().bytes(),
                  .window = peer->home.link.congestion_window(),
                  .in_flight = peer->home.link.in_flight()};
}

std::vector<RailView> Inspector::rails(Instant now, PeerId id) const {
  std::vector<RailView> views;
  const Peer* peer = resources_.peers.find(id);
  if (peer == nullptr) return views;
  peer->for_each_rail([&](const Rail& rail) { views.push_back(rail_view(now, rail)); });
  if (peer->memory_rail() != nullptr) views.push_back(memory_view(*peer->memory));
  return views;
}

// A run is checked in as one guest for all its chunks.
std::size_t Inspector::packets_in_flight() const {
  return resources_.hotel.guests() - resources_.packets.runs_in_use() +
         resources_.packets.chunks_in_runs();
}

Stats Inspector::stats() const {
  Stats stats = resources_.stats;
  stats.messages_received = resources_.inbox_counters.messages;
  stats.bytes_received = resources_.inbox_counters.bytes;
  stats.unexpected_messages = resources_.inbox_counters.unexpected;
  stats.held_back_sends = resources_.outbox_counters.held_back;
  stats.announced_sends = resources_.outbox_counters.announced;
  resources_.peers.for_each([&](const Peer& peer) {
    stats.unexpected_bytes += peer.inbox.charged();
    if (peer.phase == Phase::kGone) return;  // its links were counted when it ended
    peer.for_each_rail([&](const Rail& rail) {
      stats.spurious_retransmits += rail.link.spurious();
      stats.timeouts += rail.link.timeouts();
    });
    if (peer.phase == Phase::kConnected) ++stats.peers_connected;
  });
  stats.packets_in_flight = packets_in_flight();
  nics_.for_each_channel([&](const Channel& channel) {
    const nic::PortCounters& counters = channel.port().counters();
    stats.nic_send_errors += counters.send_errors;
    stats.nic_receive_overflows += counters.receive_overflows;
    stats.nic_packets_returned += counters.returned;
    stats.nic_packets_too_long += counters.too_long;
    stats.nic_bursts_sent += counters.bursts_sent;
    stats.nic_bursts_received += counters.bursts_received;
    stats.nic_bursts_refused += counters.offload_refused;
    stats.nic_receive_errors += counters.receive_errors + counters.receive_truncated;
    const auto times = [&](nic::ErrorClass kind) { return counters.errors.of(kind).times; };
    stats.nic_errors_timeout += times(nic::ErrorClass::kTimeout);
    stats.nic_errors_flushed += times(nic::ErrorClass::kFlushed);
    stats.nic_errors_device += times(nic::ErrorClass::kDevice);
    stats.nic_errors_remote += times(nic::ErrorClass::kRemote);
    stats.nic_errors_local += times(nic::ErrorClass::kLocal);
  });
  stats.rtt_ns = ack_handler_.rtt_ns();
  return stats;
}

Audit Inspector::audit() const {
  Audit audit;
  audit.hotel_guests = packets_in_flight();
  audit.packets_taken = resources_.packets.in_use();
  audit.receives_posted = resources_.matchers.receives_posted();
  audit.windows_in_use = resources_.rings.in_use();
  audit.rails_blamed = rails_.rails_blamed();
  resources_.peers.for_each([&](Peer& peer) {
    const bool hello_waits =
        peer.hello != nullptr && peer.hello->state == channel::PacketState::kQueued;
    peer.for_each_rail([&](const Rail& rail) {
      audit.packets_in_flight += rail.link.in_flight();
      audit.packets_accounted += rail.link.in_flight() + rail.link.lost().size();
      if (peer.rails == nullptr || !rail.nic->device().relayed || upkeep_of(rail).health.up() ||
          rail.link.in_flight() == 0) {
        return;
      }
      audit.relay_probes += rail.link.in_flight();
      ++audit.relay_windows;
    });
    if (peer.rails != nullptr) audit.packets_accounted += peer.rails->evacuated.size();
    audit.packets_accounted += in_memory(peer) + peer.outbox.queued_packets() +
                               (hello_waits ? 1 : 0) +
                               (peer.said != nullptr && peer.said->early_data != nullptr ? 1 : 0);
    audit.unexpected_bytes += peer.inbox.charged();
    audit.sends_pending += peer.outbox.unfinished() + peer.one_sided.pending();
    audit.receives_posted += peer.inbox.filling();
    audit.peers_inconsistent += is_consistent(peer) ? 0 : 1;
    const Sends sends = transmitter_.can_send(peer);
    const bool listed = peer.ready.is_linked();
    audit.peers_unlisted += sends == Sends::kSomething && !listed;
    // Peers in other phases may be in the list because they, or what they wait for, have just
    // changed state.
    audit.peers_listed_idle +=
        sends == Sends::kNothing && listed && peer.phase == Phase::kConnected;
  });
  return audit;
}

std::string Inspector::dump() const {
  const Stats now = stats();
  std::string out = fmt::format(
      "engine {:016x} on {} ({}): {} peers, {} packets taken, {} in flight, {} receives posted\n",
      resources_.epoch, nics_[0].device().name, nic::to_string(nics_.address()),
      resources_.peers.size(), resources_.packets.in_use(), packets_in_flight(),
      resources_.matchers.receives_posted());
  out += fmt::format(
      "  retransmits {} (spurious {}), timeouts {}, acks alone {}, dropped {}, black holes {}, "
      "path "
      "probes {}\n",
      now.retransmits, now.spurious_retransmits, now.timeouts, now.acks_sent, now.dropped_packets,
      now.path_black_holes, now.path_probes_sent);
  for (std::size_t i = 0; i < wire::kVerdicts; ++i) {
    if (now.dropped_by_reason[i] == 0) continue;
    out += fmt::format("  dropped {}: {}\n", wire::name(static_cast<wire::Verdict>(i)),
                       now.dropped_by_reason[i]);
  }
  resources_.peers.for_each([&](Peer& peer) {
    const auto& link = peer.home.link;
    out += fmt::format(
        "peer {}.{} at {}: {}{}{}, in flight {} of {}, lost {}, next {}, floor {}, expects {}{}, "
        "srtt {} ns, timeout {} ns, packets of {} of {} bytes, queued {}, unfinished {}, charged "
        "{}\n",
        peer.id.index, peer.id.generation, nic::to_string(peer.command_address), name(peer.phase),
        peer.phase == Phase::kGone ? ": " : "", peer.phase == Phase::kGone ? name(peer.why) : "",
        link.in_flight(), link.congestion_window(), peer.home.link.lost().size(),
        link.window().next(), link.window().floor(), link.acks().next(),
        link.acks().has_gap() ? " (gaps)" : "", link.rtt().smoothed().count(),
        link.timeout().count(), link.path().bytes(), link.path().most(),
        peer.outbox.queued_packets(), peer.outbox.unfinished(), peer.inbox.charged());
    if (peer.rails == nullptr) return;
    peer.for_each_rail([&](const Rail& rail) {
      const RailUpkeep& upkeep = upkeep_of(rail);
      out += fmt::format(
          "  rail {} by {}: {}, {}; in flight {} of {}, lost {}, srtt {} ns, timeout {} ns, "
          "sent {} packets, evacuated {}, left {} times\n",
          rail.number, nics_[rail.module].device().name, name(upkeep.health.state()),
          name(upkeep.health.reason()), rail.link.in_flight(), rail.link.congestion_window(),
          rail.link.lost().size(), rail.link.rtt().smoothed().count(), rail.link.timeout().count(),
          upkeep.packets_sent, upkeep.evacuated, upkeep.times_left);
    });
  });
  return out;
}

}  // namespace pullman::engine
