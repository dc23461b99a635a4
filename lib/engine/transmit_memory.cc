// Serves a peer on this host: what it is sent goes through memory, but for what belongs to a NIC:
// probes, BYE, and packets that had left by one before.
#include "engine/transmitter.h"

namespace pullman::engine {

bool Transmitter::serve_memory(Instant now, Peer& peer, MemoryRail& memory) {
  bool more = serve_nics(now, peer);
  bool left = true;
  for (std::size_t sent = 0; left && sent < kMemoryShare && memory.has_room(); ++sent) {
    const bool frames = peer.outbox.queued_packets() == 0 && has_memory_control(peer);
    if (!frames && !peer.outbox.has_packets()) break;
    left = frames ? send_frames_by_memory(peer, memory) : send_new_by_memory(peer, memory);
  }
  more = !wake_by_nic(now, peer, memory) || !left || more;
  return more || can_send_by_memory(peer, memory) != Sends::kNothing;
}

bool Transmitter::send_at_once_by_memory(Instant now, Peer& peer, MemoryRail& memory) {
  const bool sent = send_new_by_memory(peer, memory);
  return wake_by_nic(now, peer, memory) && sent;
}

// Sends the next packet of messages, with the frames that are due if they have room in it. Returns
// false if the next turn is to go on.
bool Transmitter::send_new_by_memory(Peer& peer, MemoryRail& memory) {
  Packet* packet = peer.outbox.next_packet(message::Outbox::Heads::kFull, memory.max_packet());
  if (packet == nullptr) {
    ready_.note_blocked_on_pool();
    return false;
  }
  if (peer.inbox.has_frames() && packet->payload == nullptr) [[unlikely]] {
    packet->used +=
        static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), packet->room()));
  }
  // It was packed before the peer had joined the memory, for which it is too long.
  if (packet->used > memory.max_copied()) [[unlikely]] {
    packets_to_leave_again(peer).push_back(*packet);
    return false;
  }
  post(peer, memory, *packet);
  return true;
}

// The same for frames that are due, in a packet of their own.
bool Transmitter::send_frames_by_memory(Peer& peer, MemoryRail& memory) {
  Packet* packet = peer.outbox.control_packet(control_bytes(peer));
  if (packet == nullptr) {
    ready_.note_blocked_on_pool();
    return false;
  }
  write_control(peer, *packet);
  post(peer, memory, *packet);
  return true;
}

void Transmitter::post(Peer& peer, MemoryRail& memory, Packet& packet) {
  memory.post(packet);
  nics_.note_moved();
  ++peer.memory->sent;
  ++stats_.memory_packets_sent;
}

// Wakes the peer if it sleeps. Returns false if the next turn is to go on.
bool Transmitter::wake_by_nic(Instant now, Peer& peer, MemoryRail& memory) {
  if (!memory.must_wake()) [[likely]]
    return true;
  memory_.wake(peer);
  return !serve_nics(now, peer);
}

// Returns whether the next turn goes on.
bool Transmitter::serve_nics(Instant now, Peer& peer) {
  bool more = false;
  if (peer.rails == nullptr) {
    more = !send_probe(now, peer.home) || !resend_lost(now, peer.home);
  } else {
    peer.for_each_rail([&](Rail& rail) { tend_rail(now, rail, more); });
    more = resend_evacuated(now, peer) == Next::kBlocked || more;
  }
  if (!peer.bye_due) return more;
  Rail* rail = peer.rails == nullptr ? &peer.home : rail_for_small(peer, ports_full_);
  const bool may = rail != nullptr && rail->link.may_send();
  return (may && !send_control_frames(now, *rail)) || more;
}

Sends Transmitter::can_send_by_memory(Peer& peer, const MemoryRail& memory) const {
  if (nics_can_send(peer)) return Sends::kSomething;
  if (!memory.has_room()) return Sends::kNothing;
  if (peer.outbox.has_packets() || has_pending_frames(peer)) return Sends::kSomething;
  return has_memory_control(peer) ? Sends::kPerhaps : Sends::kNothing;
}

// Returns whether serve_nics() would send something.
bool Transmitter::nics_can_send(Peer& peer) {
  if (peer.rails == nullptr) {
    return can_tend(peer.home) || (peer.bye_due && peer.home.link.may_send());
  }
  bool any = false;
  peer.for_each_rail([&](const Rail& rail) {
    any = any || (rail.resolved() && (usable(rail) ? can_tend(rail) : rail.ping_due));
  });
  return any || (!peer.rails->evacuated.empty() && rail_for_bulk(peer, 0) != nullptr) ||
         (peer.bye_due && rail_for_small(peer, 0) != nullptr);
}

}  // namespace pullman::engine
