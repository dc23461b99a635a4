// From due frames to datagrams: lost packets first, then control, then new work; ACKs last, when it
// is known which of them found a ride.
#include <algorithm>

#include "base/check.h"
#include "engine/engine_impl.h"
#include "message/pieces.h"

namespace pullman::engine {

using reliability::AckNeed;

void Engine::Impl::mark_ready(Peer& peer) {
  if (!peer.ready.is_linked()) ready_.push_back(peer);
}

// Each peer that was ready when the turn began is served once.
void Engine::Impl::transmit(Instant now) {
  retransmits_left_ = kRetransmitsPerTurn;
  starving_ = 0;
  port_full_ = false;
  for (std::size_t turns = ready_.size(); turns > 0 && !ready_.empty(); --turns) {
    Peer& peer = ready_.front();
    ready_.pop_front();
    if (serve(now, peer)) mark_ready(peer);
  }
}

// A peer that has work and no packet for it is served each turn, but no turn is asked for: packets
// come back with what arrives, with a timer, or when a peer ends.
bool Engine::Impl::starves() {
  ++starving_;
  return false;
}

bool Engine::Impl::has_work(const Peer& peer) const {
  return peer.outbox.has_packets() || peer.inbox.has_frames() || peer.bye_due || peer.ping_due ||
         !peer.link.lost().empty();
}

// Sends what one peer has, within its quota. True if it has more that could leave next turn; false
// if it has nothing, or must wait for an ack (which makes it ready again).
bool Engine::Impl::serve(Instant now, Peer& peer) {
  if (peer.phase == Phase::kClosing) begin_leaving(now, peer);
  if (may_call(peer)) call(now, peer);
  if (!peer.flows()) return may_call(peer);
  if (!send_probe(now, peer)) return true;
  if (!resend_lost(now, peer)) return true;
  if (peer.link.path().probe_due(now)) [[unlikely]]
    send_path_probe(now, peer);
  for (std::size_t sent = 0; sent < kPacketsPerTurn; ++sent) {
    if (!peer.link.may_send()) return false;
    const bool nothing_small = peer.outbox.queued_packets() == 0;
    if (nothing_small && (peer.inbox.has_frames() || peer.bye_due)) {
      if (!send_control_frames(now, peer)) return true;
      continue;
    }
    if (!peer.outbox.has_packets()) return false;
    if (nothing_small) sent += send_runs(now, peer, kPacketsPerTurn - sent);
    if (!peer.link.lost().empty()) return true;  // the port is full: what it refused leaves first
    if (sent < kPacketsPerTurn && peer.link.may_send() && peer.outbox.has_packets() &&
        !send_new(now, peer)) {
      return true;
    }
  }
  return has_work(peer);
}

// Bodies of lost packets leave again under new numbers, a few per turn. False: to be continued.
bool Engine::Impl::resend_lost(Instant now, Peer& peer) {
  auto& lost = peer.link.lost();
  while (!lost.empty()) {
    Packet& packet = lost.front();
    if (packet.is_probe) {
      drop_lost_probe(now, peer, packet);
      continue;
    }
    if (!peer.link.may_send()) return true;
    const bool again = packet.state == channel::PacketState::kLost;
    if (again && retransmits_left_ == 0) return false;
    Channel* channel = channel_for(peer, packet);
    if (channel == nullptr) return false;
    lost.pop_front();
    if (again) {
      --retransmits_left_;
      ++stats_.retransmits;
    }
    message::shorten(packet, peer.link.path().bytes());
    post(now, peer, packet, *channel, wire::PacketType::kSequenced);
  }
  return true;
}

// A probe asks what has arrived, on the channel where packets are overdue (RFC 9002 6.2.4). It may
// exceed credit and congestion window by one packet. False: no room for it now.
bool Engine::Impl::send_probe(Instant now, Peer& peer) {
  const auto overdue = peer.link.take_probe();
  if (!overdue && !peer.ping_due) return true;
  peer.ping_due = true;
  Channel* channel = with_room(overdue.value_or(ChannelKind::kCommand));
  if (channel == nullptr) return false;
  Packet* packet = peer.link.has_space() ? peer.outbox.control_packet(wire::kPingBytes) : nullptr;
  if (packet == nullptr) return probe_with_oldest(now, peer);
  peer.ping_due = false;
  packet->is_probe = true;
  packet->used += static_cast<std::uint32_t>(wire::put_ping(packet->end()));
  ++stats_.probes_sent;
  post(now, peer, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// Without a packet or a number for a PING the oldest packet in flight is sent again instead: it
// elicits an ACK, too (wire.md 7.3). If there is none the next timeout asks.
bool Engine::Impl::probe_with_oldest(Instant now, Peer& peer) {
  Packet* oldest = peer.link.find(peer.link.window().floor());
  if (oldest != nullptr) {
    Channel* channel = channel_for(peer, *oldest);
    if (channel == nullptr || oldest->in_channel) return false;
    peer.link.abandon(*oldest);
    ++stats_.probes_sent;
    if (!oldest->is_path_probe) message::shorten(*oldest, reliability::PathSize::kLeast);
    post(now, peer, *oldest, *channel, wire::PacketType::kSequenced);
  }
  peer.ping_due = false;
  return true;
}

// Grants, allowance and BYE in a packet of their own.
bool Engine::Impl::send_control_frames(Instant now, Peer& peer) {
  Channel* channel = with_room(ChannelKind::kCommand);
  if (channel == nullptr) return false;
  Packet* packet = peer.outbox.control_packet(wire::kGrantBytes);
  if (packet == nullptr) return starves();
  packet->used +=
      static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), packet->room()));
  if (peer.bye_due && packet->room() >= wire::kByeBytes) {
    packet->used += static_cast<std::uint32_t>(wire::put_bye(packet->end()));
    peer.bye_due = false;
  }
  post(now, peer, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

bool Engine::Impl::send_new(Instant now, Peer& peer) {
  // Room is asked for before the packet is built: a built packet must leave.
  if (with_room(ChannelKind::kCommand) == nullptr || with_room(ChannelKind::kData) == nullptr) {
    return false;
  }
  Packet* packet = peer.outbox.next_packet();
  if (packet == nullptr) return starves();
  if (packet->payload == nullptr && peer.inbox.has_frames() && packet->rest == 0) {
    const std::size_t limit = std::min<std::size_t>(packet->capacity, peer.outbox.packet_bytes());
    if (packet->used < limit) {
      packet->used +=
          static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), limit - packet->used));
    }
  }
  ++stats_.packets_sent;
  post(now, peer, *packet, *channel_for(peer, *packet), wire::PacketType::kSequenced);
  return true;
}

// Tiny packets take the command channel, full ones the data channel. Null if that has no room now.
// A tiny one behind others that wait leaves with them: so it does not overtake what must match
// first.
Channel* Engine::Impl::channel_for(const Peer& peer, const Packet& packet) {
  constexpr std::size_t kOverhead = wire::kHeaderBytes + wire::kMessageBytes;
  const bool tiny =
      packet.size() <= std::min<std::size_t>(config_.tiny_bytes + kOverhead, peer.command_bytes);
  return with_room(tiny && data().waiting() == 0 ? ChannelKind::kCommand : ChannelKind::kData);
}

Channel* Engine::Impl::with_room(ChannelKind kind) {
  Channel& channel = modules_.front()->channel(kind);
  if (channel.room() == 0) channel.flush();
  return channel.room() > 0 ? &channel : nullptr;
}

void Engine::Impl::post(Instant now, Peer& peer, Packet& packet, Channel& channel,
                        wire::PacketType type) {
  packet.channel = channel.kind();
  const bool owed = peer.link.ack_need() != AckNeed::kNone;
  peer.link.stamp(now, type == wire::PacketType::kHello ? wire::ConnectionId{} : peer.theirs,
                  credit_, type, packet);
  if (config_.checksum) {
    wire::seal({packet.bytes, packet.used}, {packet.payload, packet.payload_bytes});
  }
  const bool command = channel.kind() == ChannelKind::kCommand;
  channel.post(packet, command ? peer.command_to : peer.data_to);
  if (owed) note_ride(peer);
}

// An ACK was owed when the packet was stamped: it may have ridden along.
void Engine::Impl::note_ride(Peer& peer) {
  if (peer.link.ack_need() != AckNeed::kNone) return;
  ++stats_.acks_piggybacked;
  if (peer.ack_timer.checked_in()) ack_timers_.check_out(peer.ack_timer);
}

void Engine::Impl::send_acks(Instant now) {
  while (!ack_now_.empty()) {
    Peer& peer = ack_now_.front();
    ack_now_.pop_front();
    if (peer.link.ack_need() != AckNeed::kNone) send_ack(now, peer);
  }
}

// An ACK alone, on the command channel. If the NIC has no room it is dropped: acks are cumulative,
// and a sender that misses one asks.
void Engine::Impl::send_ack(Instant now, Peer& peer) {
  if (peer.command_to == nic::kNowhere || peer.phase == Phase::kAnswering) return;
  std::array<std::byte, reliability::Link::kAckBytes> bytes;
  const std::size_t length = peer.link.write_ack(now, peer.theirs, credit_, bytes.data());
  if (config_.checksum) wire::seal({bytes.data(), length}, {});
  if (peer.ack_timer.checked_in()) ack_timers_.check_out(peer.ack_timer);
  ++stats_.acks_sent;
  command().send_unremembered({bytes.data(), length}, peer.command_to);
}

void Engine::Impl::flush() {
  command().flush();
  data().flush();
}

}  // namespace pullman::engine
