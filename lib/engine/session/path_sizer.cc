#include "engine/session/path_sizer.h"

#include "engine/peer/rail_choice.h"

namespace pullman::engine {

void PathSizer::settle(Instant now, Rail& rail) {
  auto& path = rail.link.path();
  path.take_news();
  if (path.watching()) {
    path.handle_hint(now, data(rail).path_bytes(rail.data_to));
    path.take_news();
  }
  if (path.bytes() < rail.packet_bytes) ++stats_.path_black_holes;
  rail.packet_bytes = static_cast<std::uint16_t>(path.bytes());
  settle_sizes(rail.peer);
}

// Sends a PING with padding. It leaves only if there is something else to send: the size of an idle
// path does not matter. If there is no room or no packet now, the next turn tries again.
void PathSizer::send_probe(Instant now, Rail& rail) {
  if (!rail.peer.outbox.has_packets() || !rail.link.may_send()) return;
  Channel* channel = with_room(rail, ChannelKind::kData);
  if (channel == nullptr) return;
  Packet* packet = rail.peer.outbox.control_packet(rail.link.path().most() - wire::kHeaderBytes);
  if (packet == nullptr) return;
  const std::size_t bytes = rail.link.path().begin_probe();
  packet->is_probe = packet->is_path_probe = true;
  packet->used += static_cast<std::uint32_t>(wire::put_ping(packet->end()));
  packet->used += static_cast<std::uint32_t>(
      wire::put_padding(packet->end(), bytes - packet->used - wire::kPaddingBytes));
  ++stats_.path_probes_sent;
  sender_.post(now, rail, *packet, *channel, wire::PacketType::kSequenced);
}

void PathSizer::drop_lost_probe(Instant now, Rail& rail, Packet& probe) {
  rail.link.lost().erase(rail.link.lost().iterator_to(probe));
  if (probe.is_path_probe) rail.link.path().handle_probe_lost(now, probe.size());
  reclaimer_.release(rail, probe);
  if (rail.peer.phase == Phase::kClosing) lifecycle_.begin_leaving(now, rail.peer);
}

void PathSizer::resume(Rail& rail, Packet& packet) {
  if (packet.in_channel) withdraw(rail, packet);
  rail.peer.outbox.handle_fragment_acked(packet);
  packet.state = channel::PacketState::kQueued;
  rail.link.lost().push_back(packet);
}

}  // namespace pullman::engine
