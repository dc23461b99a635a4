#include "engine/send/packet_reclaimer.h"

namespace pullman::engine {

void tell_nics(Peer& peer, ReadyPeers& ready) {
  peer.nics_due = true;
  if (tells_nics(peer)) ready.mark(peer);
}

void PacketReclaimer::take_back_all(Peer& peer) {
  peer.for_each_rail([this](Rail& rail) { take_back(rail); });
  if (peer.rails != nullptr) take_back(peer, peer.rails->evacuated);
  if (peer.memory == nullptr || !peer.memory->rail) return;
  while (Packet* packet = peer.memory->rail->take_unread()) peer.outbox.abandon(*packet);
}

void PacketReclaimer::take_back(Rail& rail) {
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

void PacketReclaimer::take_back(Peer& peer, channel::PacketQueue& queue) {
  while (!queue.empty()) {
    Packet& packet = queue.front();
    queue.pop_front();
    if (packet.in_channel) withdraw(*peer.rail(packet.rail), packet);
    if (&packet == peer.hello) peer.hello = nullptr;
    peer.outbox.abandon(packet);
  }
}

void PacketReclaimer::release(const Rail& rail, Packet& packet) {
  ready_.note_packets_returned();
  if (packet.in_channel) withdraw(rail, packet);
  packets_.give_back(packet);
}

void PacketReclaimer::pull_out(Rail& rail) {
  const auto& window = rail.link.window();
  for (auto n = window.floor(); n < window.next(); ++n) {
    Packet* packet = rail.link.find(n);
    if (packet != nullptr && packet->in_channel) withdraw(rail, *packet);
  }
  for (Packet& packet : rail.link.lost()) {
    if (packet.in_channel) withdraw(rail, packet);
  }
}

void PacketReclaimer::repeat_nics(const Packet& packet, Peer& peer) {
  if (holds_list(packet) && !holds_old_list(packet, peer)) tell_nics(peer, ready_);
}

void PacketReclaimer::drop_probes(Rail& rail, std::size_t kept) {
  auto& window = rail.link.window();
  for (auto n = window.next(); n > window.floor() && rail.link.in_flight() > 0;) {
    Packet* packet = rail.link.find(--n);
    if (!is_probe(packet)) continue;
    if (kept > 0) {
      --kept;
      continue;
    }
    rail.link.abandon(*packet);
    release(rail, *packet);
  }
  rail.link.take_probe();
  if (usable(rail)) return;
  for (auto& lost = rail.link.lost(); !lost.empty();) {
    Packet& packet = lost.front();
    lost.pop_front();
    repeat_nics(packet, rail.peer);
    release(rail, packet);
  }
}

}  // namespace pullman::engine
