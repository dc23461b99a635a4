// Turns due frames into datagrams: lost packets first, then control, then new work.
#include "engine/transmitter.h"

#include <algorithm>

#include "message/tx/fragments.h"
#include "wire/memory.h"

namespace pullman::engine {

// BYE takes the data channel of the rail for small messages, behind what the peer has not read yet.
void Transmitter::send_last_byes(Instant now) {
  for (int i = 0; i < kByeRepeats; ++i) {
    peers_.for_each([&](Peer& peer) {
      if (!peer.flows()) return;
      Rail& rail = *peer.rail(peer.rails == nullptr ? 0 : peer.rails->small_rail);
      if (!rail.resolved() || !rail.link.has_space()) return;
      peer.bye_due = true;
      send_control_frames(now, rail, ChannelKind::kData);
    });
    nics_.flush();
  }
}

void Transmitter::transmit(Instant now) {
  ready_.begin_turn();
  if (ready_.empty()) return;
  ports_full_ = 0;
  const auto left = [this] {
    return stats_.packets_sent + stats_.retransmits + stats_.memory_packets_sent;
  };
  const std::uint64_t enough = stats_.packets_sent + nics_.packets_per_turn();
  bool refused = false;
  for (std::size_t turns = ready_.size(); turns > 0 && !ready_.empty(); --turns) {
    if (stats_.packets_sent >= enough) break;
    Peer& peer = ready_.take_first();
    const std::uint64_t before = left();
    if (!serve(now, peer)) continue;
    peer.refused = left() == before;
    refused = refused || peer.refused;
    ready_.mark(peer);
  }
  if (refused) [[unlikely]]
    ready_.put_refused_first();
}

void Transmitter::send_appended(Instant now) {
  has_appended_ = false;
  ports_full_ = 0;
  for (std::size_t turns = ready_.size(); turns > 0 && !ready_.empty(); --turns) {
    Peer& peer = ready_.take_first();
    if (!leaves_whole(peer) || serve(now, peer)) ready_.mark(peer);
  }
  nics_.flush();
}

bool Transmitter::serve(Instant now, Peer& peer) {
  if (peer.phase == Phase::kClosing) lifecycle_.begin_leaving(now, peer);
  if (handshake_.may_call(peer)) handshake_.call(now, peer);
  if (tells_nics(peer) && !exchange_.send_list(now, peer, ports_full_)) [[unlikely]]
    return true;
  if (!peer.flows()) return handshake_.may_call(peer);
  // A job may connect each of its processes with all others: memory is only for those to which
  // something is sent.
  if (peer.may_share && !peer.outbox.idle()) [[unlikely]]
    memory_.offer(peer);
  const bool lacks_packet = may_announce(peer) && !peer.outbox.announce();
  MemoryRail* memory = peer.memory_rail();
  const bool more = memory != nullptr       ? serve_memory(now, peer, *memory)
                    : peer.rails != nullptr ? serve_rails(now, peer)
                                            : serve_home(now, peer);
  if (lacks_packet && !more) ready_.note_blocked_on_pool();
  return more || lacks_packet || may_announce(peer);
}

bool Transmitter::serve_home(Instant now, Peer& peer) {
  Rail& rail = peer.home;
  if (!send_probe(now, rail)) return true;
  if (!resend_lost(now, rail)) return true;
  if (rail.link.path().probe_due(now)) [[unlikely]]
    path_sizer_.send_probe(now, rail);
  const std::size_t most = share_of_turn(rail);
  for (std::size_t sent = 0; sent < most; ++sent) {
    const Next next = send_next(now, rail, most, sent);
    if (next == Next::kNothing) return false;
    // What the port did not take may have to wait for an ACK now.
    if (next == Next::kBlocked) return can_send(peer) != Sends::kNothing;
  }
  return engine::has_work(peer) && can_send(peer) != Sends::kNothing;
}

Sends Transmitter::can_send(Peer& peer) const {
  if (handshake_.may_call(peer)) return Sends::kSomething;
  // A list leaves once its NIC has room and the address is resolved.
  if (tells_nics(peer)) return Sends::kPerhaps;
  if (!peer.flows()) return Sends::kNothing;
  if (may_announce(peer)) return Sends::kSomething;
  if (const MemoryRail* memory = peer.memory_rail()) return can_send_by_memory(peer, *memory);
  return peer.rails != nullptr ? rails_can_send(peer) : home_can_send(peer);
}

// Called when no rail lets the peer send: counts that if credit is the reason, and there is
// something to send.
void Transmitter::note_if_credit_stalls(Peer& peer) {
  if (!engine::has_work(peer)) return;
  Tally& tally = peers_.tally_of(peer);
  bool lacks_credit = false;
  std::uint64_t sent = tally.bytes_sent;
  peer.for_each_rail([&](const Rail& rail) {
    if (peer.rails != nullptr) sent += upkeep_of(rail).bytes_sent;
    if (!usable(rail) || !rail.resolved()) return;
    lacks_credit = lacks_credit || rail.link.in_flight() >= std::max(rail.link.credit(), 1u);
  });
  if (lacks_credit) tally.note_credit_stall(sent);
}

// Sends what is to leave next on that rail: `sent` packets have left this turn, `most` may.
Transmitter::Next Transmitter::send_next(Instant now, Rail& rail, std::size_t most,
                                         std::size_t& sent) {
  Peer& peer = rail.peer;
  if (!rail.link.may_send()) {
    note_if_credit_stalls(peer);
    return Next::kNothing;
  }
  const bool nothing_small = peer.outbox.queued_packets() == 0;
  if (nothing_small && has_control(peer)) {
    return send_control_frames(now, rail) ? Next::kGoOn : Next::kBlocked;
  }
  if (!peer.outbox.has_packets()) return Next::kNothing;
  if (nothing_small) {
    if (waits_for_more(rail)) return Next::kNothing;
    // The rest of the turn's quota is too small for all of a short message.
    if (sent != 0 && peer.outbox.splits_next(most - sent)) return Next::kBlocked;
    const std::size_t chunks = send_runs(now, rail, most - sent);
    // If the port is full, the packets that it refused leave first.
    if (!rail.link.lost().empty()) return Next::kBlocked;
    if (chunks != 0) {
      sent += chunks - 1;  // the caller counts one
      return Next::kGoOn;
    }
  }
  return send_new(now, rail) ? Next::kGoOn : Next::kBlocked;
}

// Sends the bodies of lost packets again under new numbers, a few per turn. Returns false if the
// next turn is to go on.
bool Transmitter::resend_lost(Instant now, Rail& rail) {
  auto& lost = rail.link.lost();
  while (!lost.empty()) {
    Packet& packet = lost.front();
    if (packet.is_probe) {
      path_sizer_.drop_lost_probe(now, rail, packet);
      continue;
    }
    const bool again = packet.state == channel::PacketState::kLost;
    if (again && holds_old_list(packet, rail.peer)) {
      exchange_.drop_lost_list(now, rail, packet);
      continue;
    }
    if (!rail.link.may_send()) return true;
    if (again && retransmits_left_ == 0) return false;
    Channel* channel = sender_.channel_for(rail, packet);
    if (channel == nullptr) return false;
    lost.pop_front();
    if (again) {
      --retransmits_left_;
      ++stats_.retransmits;
    }
    message::fragment(packet, rail.link.path().bytes());
    sender_.post(now, rail, packet, *channel, wire::PacketType::kSequenced);
  }
  return true;
}

// Sends a probe, which asks what has arrived, on the channel where packets are overdue (RFC 9002
// 6.2.4). It may exceed credit and congestion window by one packet. Returns false if there is no
// room for it now.
bool Transmitter::send_probe(Instant now, Rail& rail) {
  const auto overdue = rail.link.take_probe();
  if (!overdue && !rail.ping_due) return true;
  rail.ping_due = true;
  Channel* channel = with_room(rail, overdue.value_or(ChannelKind::kCommand));
  if (channel == nullptr) return false;
  Packet* packet =
      rail.link.has_space() ? rail.peer.outbox.control_packet(wire::kPingBytes) : nullptr;
  if (packet == nullptr) return probe_with_oldest(now, rail);
  rail.ping_due = false;
  packet->is_probe = true;
  packet->used += static_cast<std::uint32_t>(wire::put_ping(packet->end()));
  ++stats_.probes_sent;
  sender_.post(now, rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// Sends the oldest packet in flight again, since there is no packet or number for a PING: it
// elicits an ACK, too (wire.md 7.3). If nothing is in flight, the next timeout probes.
bool Transmitter::probe_with_oldest(Instant now, Rail& rail) {
  Packet* oldest = rail.link.find(rail.link.window().floor());
  if (oldest != nullptr) {
    Channel* channel = sender_.channel_for(rail, *oldest);
    if (channel == nullptr || oldest->in_channel) return false;
    rail.link.abandon(*oldest);
    oldest->wants_ack = true;
    ++stats_.probes_sent;
    if (!oldest->is_path_probe) message::fragment(*oldest, reliability::PathSize::kLeast);
    sender_.post(now, rail, *oldest, *channel, wire::PacketType::kSequenced);
  } else if (in_memory(rail.peer) != 0) {
    ready_.note_blocked_on_pool();  // no timeout would wake the peer
    return false;
  }
  rail.ping_due = false;
  return true;
}

// Sends grants, allowance, reports of rails and BYE in a packet of their own.
bool Transmitter::send_control_frames(Instant now, Rail& rail, ChannelKind kind) {
  Peer& peer = rail.peer;
  Channel* channel = with_room(rail, kind);
  if (channel == nullptr) return false;
  Packet* packet = peer.outbox.control_packet(control_bytes(peer));
  if (packet == nullptr) {
    ready_.note_blocked_on_pool();
    return false;
  }
  if (peer.bye_due) {
    packet->used += static_cast<std::uint32_t>(peer.inbox.write_bye(packet->end()));
    peer.bye_due = false;
  }
  if (peer.memory_due && packet->room() >= wire::kMaxMemoryBytes) {
    packet->used += static_cast<std::uint32_t>(MemorySetup::write_frame(peer, packet->end()));
  }
  write_control(peer, *packet);
  sender_.post(now, rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// Writes the frames that may take any way to the peer.
void Transmitter::write_control(Peer& peer, Packet& packet) {
  if (peer.rails != nullptr) {
    packet.used +=
        static_cast<std::uint32_t>(rails_.write_reports(peer, packet.end(), packet.room()));
  }
  packet.used += static_cast<std::uint32_t>(peer.inbox.write_frames(packet.end(), packet.room()));
}

bool Transmitter::send_new(Instant now, Rail& rail, Leaves how) {
  Peer& peer = rail.peer;
  // Room is asked for before the packet is built: a built packet must leave.
  Channel* command = with_room(rail, ChannelKind::kCommand);
  Channel* data = with_room(rail, ChannelKind::kData);
  if (command == nullptr || data == nullptr) return false;
  auto heads = message::Outbox::Heads::kFull;
  if (peer.outbox.has_chunks()) [[unlikely]]
    heads = heads_for(rail);
  Packet* packet = peer.outbox.next_packet(heads);
  if (packet == nullptr) {
    ready_.note_blocked_on_pool();
    return false;
  }
  if (packet->used > peer.outbox.packet_bytes()) [[unlikely]]
    message::fragment(*packet, peer.outbox.packet_bytes());
  if (peer.inbox.has_frames() && packet->payload == nullptr && packet->rest == 0) [[unlikely]] {
    const std::size_t limit = std::min<std::size_t>(packet->capacity, peer.outbox.packet_bytes());
    if (packet->used < limit) {
      packet->used +=
          static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), limit - packet->used));
    }
  }
  ++stats_.packets_sent;
  const bool ahead = sender_.kind_for(rail, *packet, *data) == ChannelKind::kCommand;
  sender_.post(now, rail, *packet, ahead ? *command : *data, wire::PacketType::kSequenced, how);
  return true;
}

}  // namespace pullman::engine
