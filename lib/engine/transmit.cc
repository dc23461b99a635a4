// From due frames to datagrams: lost packets first, then control, then new work; ACKs last, when it
// is known which of them found a ride.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "engine/engine_impl.h"
#include "message/segments.h"

namespace pullman::engine {

using reliability::AckNeed;

void Engine::Impl::mark_ready(Peer& peer) {
  if (peer.ready.is_linked()) return;
  ready_.push_back(peer);
  fruitless_ = 0;
}

// Each peer that was ready when the turn began is served once, until the turn has lasted long
// enough: the next one begins with the rest.
void Engine::Impl::transmit(Instant now) {
  blocked_on_pool_ = 0;
  ports_full_ = 0;
  const std::uint64_t enough = stats_.packets_sent + packets_per_turn_;
  bool refused = false;
  for (std::size_t turns = ready_.size(); turns > 0 && !ready_.empty(); --turns) {
    if (stats_.packets_sent >= enough) break;
    Peer& peer = ready_.front();
    ready_.pop_front();
    const std::uint64_t before = stats_.packets_sent + stats_.retransmits;
    if (!serve(now, peer)) continue;
    peer.refused = stats_.packets_sent + stats_.retransmits == before;
    refused = refused || peer.refused;
    mark_ready(peer);
  }
  if (refused) [[unlikely]]
    put_refused_first();
}

// Nothing of theirs left, since others had filled the ports or taken the packets: they come first
// in the next turn, in the order they have waited.
void Engine::Impl::put_refused_first() {
  auto at = ready_.begin();
  for (std::size_t left = ready_.size(); left > 0; --left) {
    const auto next = std::next(at);
    if (!at->refused) ready_.splice(ready_.end(), ready_, at);
    at->refused = false;
    at = next;
  }
}

bool Engine::Impl::leaves_whole(const Peer& peer) const {
  const std::size_t packets = peer.outbox.queued_packets();
  if (packets == 0 || peer.outbox.has_chunks()) return false;
  return peer.rails != nullptr || peer.home.link.permits() >= packets;
}

// Small messages that wait for nothing but the program's next call leave before anything is asked
// for: to ask may cost a system call a channel. Not before it is known what ACKs allow: chunks, and
// what may not leave whole.
void Engine::Impl::send_what_waits(Instant now) {
  waits_ = false;
  ports_full_ = 0;
  for (std::size_t turns = ready_.size(); turns > 0 && !ready_.empty(); --turns) {
    Peer& peer = ready_.front();
    ready_.pop_front();
    if (!leaves_whole(peer) || serve(now, peer)) mark_ready(peer);
  }
  flush();
}

// A peer that has work and no packet for it is served each turn, but no turn is asked for: packets
// come back with what arrives, with a timer, or when a peer ends.
bool Engine::Impl::is_blocked_on_pool() {
  ++blocked_on_pool_;
  return false;
}

bool Engine::Impl::has_work(const Peer& peer) const {
  return peer.outbox.has_packets() || may_announce(peer) || peer.inbox.has_frames() ||
         peer.bye_due || tells_nics(peer) || has_work(peer.home) ||
         (peer.rails != nullptr && rails_have_work(peer));
}

// Messages without allowance are announced when all that was sent has been heard of: it may just be
// on its way back.
bool Engine::Impl::all_was_heard(const Peer& peer) const {
  return !peer.outbox.has_packets() && nothing_to_deliver(peer);
}

bool Engine::Impl::has_work(const Rail& rail) const {
  return rail.ping_due || !rail.link.lost().empty();
}

// Sends what one peer has, within its quota. True if it has more that could leave next turn; false
// if it has nothing, or must wait for an ack (which makes it ready again).
bool Engine::Impl::serve(Instant now, Peer& peer) {
  if (peer.phase == Phase::kClosing) begin_leaving(now, peer);
  if (may_call(peer)) call(now, peer);
  if (tells_nics(peer) && !send_nics(now, peer)) [[unlikely]]
    return true;
  if (!peer.flows()) return may_call(peer);
  const bool lacks_packet = may_announce(peer) && !peer.outbox.announce();
  const bool more = peer.rails != nullptr ? serve_rails(now, peer) : serve_home(now, peer);
  if (lacks_packet && !more) is_blocked_on_pool();
  return more || lacks_packet || may_announce(peer);
}

bool Engine::Impl::serve_home(Instant now, Peer& peer) {
  Rail& rail = peer.home;
  if (!send_probe(now, rail)) return true;
  if (!resend_lost(now, rail)) return true;
  if (rail.link.path().probe_due(now)) [[unlikely]]
    send_path_probe(now, rail);
  const std::size_t most = share_of_turn(rail);
  for (std::size_t sent = 0; sent < most; ++sent) {
    const Next next = send_next(now, rail, most, sent);
    if (next == Next::kNothing) return false;
    // What the port gave back may have to wait for an ACK now.
    if (next == Next::kBlocked) return can_send(peer) != Sends::kNothing;
  }
  return has_work(peer) && can_send(peer) != Sends::kNothing;
}

Engine::Impl::Sends Engine::Impl::can_send(Peer& peer) const {
  if (may_call(peer)) return Sends::kSomething;
  if (tells_nics(peer)) return Sends::kPerhaps;  // once its NIC has room, and knows the way
  if (!peer.flows()) return Sends::kNothing;
  if (may_announce(peer)) return Sends::kSomething;
  return peer.rails != nullptr ? rails_can_send(peer) : home_can_send(peer);
}

Engine::Impl::Sends Engine::Impl::home_can_send(const Peer& peer) {
  const Rail& rail = peer.home;
  if (can_tend(rail)) return Sends::kSomething;
  if (!rail.link.may_send()) return Sends::kNothing;
  if (peer.outbox.queued_packets() != 0 || has_pending_frames(peer)) return Sends::kSomething;
  if (peer.outbox.has_packets()) {
    return fills_no_burst(rail) ? Sends::kPerhaps : Sends::kSomething;
  }
  return has_control(peer) ? Sends::kPerhaps : Sends::kNothing;
}

bool Engine::Impl::can_tend(const Rail& rail) {
  if (rail.ping_due) return true;
  const auto& lost = rail.link.lost();
  return !lost.empty() && (lost.front().is_probe || rail.link.may_send());
}

// What is to leave next, on that rail: `sent` packets have left this turn, `most` may.
Engine::Impl::Next Engine::Impl::send_next(Instant now, Rail& rail, std::size_t most,
                                           std::size_t& sent) {
  Peer& peer = rail.peer;
  if (!rail.link.may_send()) return Next::kNothing;
  const bool nothing_small = peer.outbox.queued_packets() == 0;
  if (nothing_small && has_control(peer)) {
    return send_control_frames(now, rail) ? Next::kGoOn : Next::kBlocked;
  }
  if (!peer.outbox.has_packets()) return Next::kNothing;
  if (nothing_small) {
    if (waits_for_more(rail)) return Next::kNothing;
    // What is left of the turn is too little for all of a short message.
    if (sent != 0 && peer.outbox.splits_next(most - sent)) return Next::kBlocked;
    const std::size_t chunks = send_runs(now, rail, most - sent);
    // If the port is full what it refused leaves first.
    if (!rail.link.lost().empty()) return Next::kBlocked;
    if (chunks != 0) {
      sent += chunks - 1;  // the caller counts one
      return Next::kGoOn;
    }
  }
  return send_new(now, rail) ? Next::kGoOn : Next::kBlocked;
}

// Bodies of lost packets leave again under new numbers, a few per turn. False: to be continued.
bool Engine::Impl::resend_lost(Instant now, Rail& rail) {
  auto& lost = rail.link.lost();
  while (!lost.empty()) {
    Packet& packet = lost.front();
    if (packet.is_probe) {
      drop_lost_probe(now, rail, packet);
      continue;
    }
    const bool again = packet.state == channel::PacketState::kLost;
    if (again && holds_old_list(packet, rail.peer)) {
      drop_lost_list(now, rail, packet);
      continue;
    }
    if (!rail.link.may_send()) return true;
    if (again && retransmits_left_ == 0) return false;
    Channel* channel = channel_for(rail, packet);
    if (channel == nullptr) return false;
    lost.pop_front();
    if (again) {
      --retransmits_left_;
      ++stats_.retransmits;
    }
    message::shorten(packet, rail.link.path().bytes());
    post(now, rail, packet, *channel, wire::PacketType::kSequenced);
  }
  return true;
}

// A probe asks what has arrived, on the channel where packets are overdue (RFC 9002 6.2.4). It may
// exceed credit and congestion window by one packet. False: no room for it now.
bool Engine::Impl::send_probe(Instant now, Rail& rail) {
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
  post(now, rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

// Without a packet or a number for a PING the oldest packet in flight is sent again instead: it
// elicits an ACK, too (wire.md 7.3). If there is none the next timeout asks.
bool Engine::Impl::probe_with_oldest(Instant now, Rail& rail) {
  Packet* oldest = rail.link.find(rail.link.window().floor());
  if (oldest != nullptr) {
    Channel* channel = channel_for(rail, *oldest);
    if (channel == nullptr || oldest->in_channel) return false;
    rail.link.abandon(*oldest);
    oldest->wants_ack = true;
    ++stats_.probes_sent;
    if (!oldest->is_path_probe) message::shorten(*oldest, reliability::PathSize::kLeast);
    post(now, rail, *oldest, *channel, wire::PacketType::kSequenced);
  }
  rail.ping_due = false;
  return true;
}

// Reports of rails need a large packet, and so may a good-bye.
std::size_t Engine::Impl::control_bytes(const Peer& peer) {
  if (peer.bye_due) return message::Inbox::kMaxByeBytes;
  return peer.rails != nullptr && peer.rails->reports_due ? wire::kMaxWaysBytes : wire::kGrantBytes;
}

// Grants, allowance and BYE in a packet of their own.
bool Engine::Impl::send_control_frames(Instant now, Rail& rail, ChannelKind kind) {
  Peer& peer = rail.peer;
  Channel* channel = with_room(rail, kind);
  if (channel == nullptr) return false;
  Packet* packet = peer.outbox.control_packet(control_bytes(peer));
  if (packet == nullptr) return is_blocked_on_pool();
  if (peer.bye_due) {
    packet->used += static_cast<std::uint32_t>(peer.inbox.write_bye(packet->end()));
    peer.bye_due = false;
  }
  if (peer.rails != nullptr) {
    packet->used += static_cast<std::uint32_t>(write_reports(peer, packet->end(), packet->room()));
  }
  packet->used +=
      static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), packet->room()));
  post(now, rail, *packet, *channel, wire::PacketType::kSequenced);
  return true;
}

bool Engine::Impl::send_new(Instant now, Rail& rail, Leaves how) {
  Peer& peer = rail.peer;
  // Room is asked for before the packet is built: a built packet must leave.
  Channel* command = with_room(rail, ChannelKind::kCommand);
  Channel* data = with_room(rail, ChannelKind::kData);
  if (command == nullptr || data == nullptr) return false;
  auto heads = message::Outbox::Heads::kFull;
  if (peer.outbox.has_chunks()) [[unlikely]]
    heads = heads_for(rail);
  Packet* packet = peer.outbox.next_packet(heads);
  if (packet == nullptr) return is_blocked_on_pool();
  if (peer.inbox.has_frames() && packet->payload == nullptr && packet->rest == 0) [[unlikely]] {
    const std::size_t limit = std::min<std::size_t>(packet->capacity, peer.outbox.packet_bytes());
    if (packet->used < limit) {
      packet->used +=
          static_cast<std::uint32_t>(peer.inbox.write_frames(packet->end(), limit - packet->used));
    }
  }
  ++stats_.packets_sent;
  const bool ahead = kind_for(rail, *packet, *data) == ChannelKind::kCommand;
  post(now, rail, *packet, ahead ? *command : *data, wire::PacketType::kSequenced, how);
  return true;
}

// Null if that has no room now.
Channel* Engine::Impl::channel_for(const Rail& rail, const Packet& packet) {
  return with_room(rail, kind_for(rail, packet, data(rail)));
}

void Engine::Impl::post(Instant now, Rail& rail, Packet& packet, Channel& channel,
                        wire::PacketType type, Leaves how) {
  packet.channel = channel.kind();
  packet.rail = rail.number;
  const bool owed = rail.link.ack_need() != AckNeed::kNone;
  rail.link.stamp(now, type == wire::PacketType::kHello ? wire::ConnectionId{} : rail.peer.theirs,
                  credit(rail), type, packet);
  if (config_.checksum) [[unlikely]] {
    wire::seal({packet.bytes, packet.used}, {packet.payload, packet.payload_bytes});
  }
  const bool command = channel.kind() == ChannelKind::kCommand;
  const nic::Destination to = command ? rail.command_to : rail.data_to;
  if (how != Leaves::kAlone || channel.waiting() != 0 || !channel.send_alone(packet, to)) {
    posted_ |= channel.mark();
    channel.post(packet, to);
  }
  if (rail.peer.rails != nullptr && !packet.is_probe) note_sent(rail, 1, packet.size());
  if (owed) note_piggyback(rail);
}

// An ACK was owed when the packet was stamped: it may have ridden along.
void Engine::Impl::note_piggyback(Rail& rail) {
  if (rail.link.ack_need() != AckNeed::kNone) return;
  ++stats_.acks_piggybacked;
  if (rail.ack_timer.checked_in()) ack_timers_.check_out(rail.ack_timer);
}

// What is asked for, or due for its number of packets, may ride on the answer to a message that the
// program is told of at the end of this turn: it has until the end of the next one.
void Engine::Impl::send_acks(Instant now) {
  const bool told = inbox_counters_.messages != messages_told_;
  messages_told_ = inbox_counters_.messages;
  const bool may_wait = told && !acks_waited_;
  acks_waited_ = false;
  for (std::size_t left = ack_now_.size(); left > 0; --left) {
    Rail& rail = ack_now_.front();
    ack_now_.pop_front();
    const AckNeed need = rail.link.ack_need();
    if (need == AckNeed::kEnough && may_wait) {
      ack_now_.push_back(rail);
      acks_waited_ = true;
    } else if (need != AckNeed::kNone) {
      send_ack(now, rail);
    }
  }
}

// An ACK alone, on the command channel. If the NIC has no room it is dropped: acks are cumulative,
// and a sender that misses one asks.
void Engine::Impl::send_ack(Instant now, Rail& rail) {
  if (rail.command_to == nic::kInvalidDestination || rail.peer.phase == Phase::kAnswering) return;
  std::array<std::byte, reliability::Link::kAckBytes> bytes;
  const std::size_t length = rail.link.write_ack(now, rail.peer.theirs, credit(rail), bytes.data());
  if (config_.checksum) wire::seal({bytes.data(), length}, {});
  if (rail.ack_timer.checked_in()) ack_timers_.check_out(rail.ack_timer);
  ++stats_.acks_sent;
  command(rail).send_unremembered({bytes.data(), length}, rail.command_to);
}

void Engine::Impl::flush_posted() {
  for (std::uint32_t bits = posted_; bits != 0; bits &= bits - 1) {
    Channel& channel = *row_[static_cast<unsigned>(std::countr_zero(bits))];
    if (channel.flush()) moved_ = true;
    if (channel.waiting() == 0) posted_ &= ~channel.mark();
  }
}

}  // namespace pullman::engine
