// How peers meet (wire.md 5): HELLO, WELCOME, and the proof that both got there. Cold.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_impl.h"

namespace pullman::engine {
namespace {

// What a resolve() is for: the peer, and the channel that will use the destination.
std::uint64_t cookie_of(PeerId id, ChannelKind kind) {
  return std::uint64_t{id.index} << 32 | (id.generation & 0xFFFFFF) << 8 |
         static_cast<std::uint64_t>(kind);
}

// Numbers start anywhere; in one of four cases just before the low 32 bits wrap, so that wrapping
// is met every day and not once a year. Never near zero: windows reach below the first number.
std::uint64_t random_start(Random& random) {
  const std::uint64_t high = (1 + random.below(1 << 20)) << 32;
  return random.below(4) == 0 ? high - random.below(64) - 1 + (std::uint64_t{1} << 32)
                              : high + (random.next() & 0xFFFFFFFF) + (std::uint64_t{1} << 32);
}

}  // namespace

Peer* Engine::Impl::make_peer(Instant now, const nic::Address& command_address) {
  while (peers_.full() && !gone_.empty()) {
    Peer* oldest = peers_.find(gone_.front());
    gone_.pop_front();
    if (oldest != nullptr) discard(*oldest);
  }
  if (peers_.full()) drop_silent_callers(now);
  const PeerId id = peers_.next_id();
  if (id == kAnyPeer) return nullptr;
  const PeerSetup setup{.link = link_options_,
                        .link_resources = link_resources_,
                        .inbox_resources = inbox_resources_,
                        .inbox_counters = inbox_counters_,
                        .packets = packets_,
                        .id_bitmaps = id_bitmaps_,
                        .id = id,
                        .first_number = random_start(random_),
                        .first_message = random_start(random_),
                        .allowance = share_,
                        .eager_bytes = eager_bytes_,
                        .first_packet_bytes = std::min(kLeastCommandBytes, kLeastDataBytes) -
                                              kHelloBodyBytes - wire::kFrameHeadBytes};
  Peer& peer = peers_.put(std::make_unique<Peer>(setup));
  peer.mine = {id.index, static_cast<std::uint32_t>(random_.next() | 1)};
  peer.command_address = command_address;
  peer.born = ++peers_born_;
  peer.heard_at = peer.news_at = now;
  peers_.index_address(peer);
  start_resolving(peer, ChannelKind::kCommand, command_address);
  arm(now, peer);
  return &peer;
}

void Engine::Impl::start_resolving(Peer& peer, ChannelKind kind, const nic::Address& address) {
  modules_.front()->channel(kind).port().resolve(address, cookie_of(peer.id, kind));
}

void Engine::Impl::handle_events(Instant now) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    const std::size_t count = modules_.front()->channel(kind).port().poll_events(events_);
    for (std::size_t i = 0; i < count; ++i) handle_event(now, kind, events_[i]);
  }
}

void Engine::Impl::handle_event(Instant now, ChannelKind kind, const nic::PortEvent& event) {
  using Kind = nic::PortEvent::Kind;
  if (event.kind != Kind::kResolved && event.kind != Kind::kResolveFailed) {
    log().warn("NIC {}: {}", modules_.front()->device().name,
               event.kind == Kind::kLinkDown ? "link down"
               : event.kind == Kind::kLinkUp ? "link up"
                                             : "failed");
    return;
  }
  const auto index = static_cast<std::uint32_t>(event.cookie >> 32);
  Peer* peer = index < peers_.slots() ? peers_.at(index) : nullptr;
  const bool current =
      peer != nullptr && cookie_of(peer->id, kind) == event.cookie && peer->phase != Phase::kGone;
  if (!current) {
    if (event.kind == Kind::kResolved) modules_.front()->channel(kind).port().forget(event.to);
    return;
  }
  if (event.kind == Kind::kResolveFailed) return end_peer(*peer, Status::kUnreachable);
  (kind == ChannelKind::kCommand ? peer->command_to : peer->data_to) = event.to;
  handle_resolved(now, *peer);
}

// A destination came in: the next step of the handshake that was waiting for it.
void Engine::Impl::handle_resolved(Instant now, Peer& peer) {
  if (peer.command_to == nic::kNowhere) return;
  if (!peer.introduced) {
    call(now, peer);
  } else if (peer.data_to != nic::kNowhere) {
    if (peer.phase == Phase::kResolving) answer(now, peer);
    if (has_work(peer) || peer.phase == Phase::kClosing) mark_ready(peer);
  }
}

wire::Hello Engine::Impl::describe(const Peer& peer) const {
  wire::Hello hello;
  hello.epoch = epoch_;
  hello.reply_to = peer.mine;
  hello.first_number = peer.link.window().first();
  hello.first_message = peer.first_message;
  hello.allowance = share_;
  hello.eager_bytes = eager_bytes_;
  hello.credit = credit();
  hello.rail = 0;
  hello.rail_count = 1;
  hello.called = peer.command_address;
  const channel::Module& module = *modules_.front();
  hello.rails[0] = {.command_packet_bytes = static_cast<std::uint16_t>(command().packet_bytes()),
                    .data_packet_bytes = static_cast<std::uint16_t>(data().packet_bytes()),
                    .mbps = module.device().mbps,
                    .command = command().port().address(),
                    .data = data().port().address()};
  return hello;
}

void Engine::Impl::put_hello(Peer& peer, Packet& packet, std::size_t padded_bytes) {
  const wire::Hello hello = describe(peer);
  const std::size_t length = std::max(wire::encoded_bytes(hello), padded_bytes);
  std::byte* out = packet.end();
  std::fill_n(out, wire::kFrameHeadBytes + length, std::byte{0});
  wire::put_hello(out, length);
  wire::encode(hello, out + wire::kFrameHeadBytes);
  packet.used += static_cast<std::uint32_t>(wire::kFrameHeadBytes + length);
}

// Whether a HELLO is to be sent now. A connection to a process from which an earlier one is still
// taking leave waits until that has ended: there is one at a time (wire.md 5.8).
bool Engine::Impl::may_call(const Peer& peer) const {
  if (peer.introduced || peer.phase > Phase::kCalling || peer.command_to == nic::kNowhere)
    return false;
  if (peer.hello != nullptr && peer.hello->state != channel::PacketState::kQueued) return false;
  const auto& others = peers_.all_at(peer.command_address);
  return std::none_of(others.begin(), others.end(),
                      [&](const Peer* other) { return other->born < peer.born; });
}

// Sends a HELLO. The first small messages ride along (wire.md 5.4); a HELLO sent again has the same
// body.
void Engine::Impl::call(Instant now, Peer& peer) {
  if (!may_call(peer)) return;
  if (peer.phase == Phase::kResolving) set_phase(peer, Phase::kCalling);
  Channel* channel = with_room(ChannelKind::kCommand);
  if (channel == nullptr || !peer.link.has_space()) return mark_ready(peer);
  if (peer.hello == nullptr) {
    Packet* packet = peer.outbox.control_packet(channel->packet_bytes() - wire::kHeaderBytes);
    if (packet == nullptr) {
      starves();
      return mark_ready(peer);
    }
    put_hello(peer, *packet, kHelloBodyBytes);
    if (Packet* riding = peer.outbox.next_packet()) {
      const auto body = riding->body();
      PULLMAN_CHECK(riding->payload == nullptr &&
                    packet->used + body.size() <= channel->packet_bytes());
      std::copy(body.begin(), body.end(), packet->end());
      packet->used += static_cast<std::uint32_t>(body.size());
      packets_.give_back(*riding);
    }
    peer.hello = packet;
  }
  post(now, peer, *peer.hello, *channel, wire::PacketType::kHello);
}

// Sends a WELCOME: only ever in answer to a HELLO, and never longer than it was, so nobody can make
// us send more to an unproved address than it sent to us (wire.md 5.5).
void Engine::Impl::answer(Instant now, Peer& peer) {
  if (peer.phase == Phase::kResolving || peer.phase == Phase::kCalling) {
    set_phase(peer, Phase::kAnswering);
  }
  Channel* channel = with_room(ChannelKind::kCommand);
  if (channel == nullptr || !peer.link.has_space()) return;  // the caller will call again
  if (peer.hello == nullptr) {
    peer.hello = peer.outbox.control_packet(channel->packet_bytes() - wire::kHeaderBytes);
    if (peer.hello == nullptr) return;
    put_hello(peer, *peer.hello, 0);
  }
  // All that can refuse comes before the last WELCOME is taken back: what is taken back leaves
  // again.
  if (peer.called_us && peer.hello->used > peer.hello_heard.length) return;
  if (peer.hello->state == channel::PacketState::kInFlight) {
    if (peer.hello->in_channel) return;
    peer.link.abandon(*peer.hello);
  }
  post(now, peer, *peer.hello, *channel, wire::PacketType::kWelcome);
}

bool Engine::Impl::acceptable(const wire::Hello& hello) const {
  const wire::RailInfo& rail = hello.rails[hello.rail];
  return rail.command_packet_bytes >= kLeastCommandBytes &&
         rail.data_packet_bytes >= kLeastDataBytes && hello.eager_bytes >= message::kLeastEager &&
         hello.allowance >= message::kLeastAllowance && hello.reply_to.proof != 0 &&
         hello.first_number >> 32 != 0 && hello.first_message >> 32 != 0;
}

Verdict Engine::Impl::handle_hello(Instant now, const wire::PacketHeader& header,
                                   std::span<const std::byte> body) {
  wire::FrameReader reader(body);
  wire::Frame frame;
  if (!reader.next(frame) || frame.type != wire::FrameType::kHello) return Verdict::kBadFrame;
  const auto hello = wire::decode_hello(frame.data);
  if (!hello || !acceptable(*hello)) return Verdict::kBadFrame;
  if (closing_ || !nic::same_port(hello->called, address())) return Verdict::kWrongState;
  if (our_call_wins(*hello)) return Verdict::kDuplicate;
  Peer* peer = peer_for_hello(now, *hello);
  if (peer == nullptr) return Verdict::kOverLimit;
  if (peer->phase == Phase::kGone) return Verdict::kWrongState;
  if (!peer->introduced) {
    introduce(*peer, *hello);
    hold_riders(*peer, body);
  }
  const Verdict verdict = note_hello(now, *peer, header, body);
  const bool unanswered = peer->phase == Phase::kAnswering || peer->phase == Phase::kCalling;
  if (unanswered && peer->data_to != nic::kNowhere && peer->command_to != nic::kNowhere) {
    answer(now, *peer);
  }
  return verdict;
}

void Engine::Impl::introduce(Peer& peer, const wire::Hello& hello) {
  const wire::RailInfo& rail = hello.rails[hello.rail];
  peer.introduced = true;
  peer.epoch = hello.epoch;
  peer.theirs = hello.reply_to;
  peer.command_bytes = std::min<std::size_t>(command().packet_bytes(), rail.command_packet_bytes);
  peer.link.handle_hello(hello.first_number, hello.credit);
  peer.outbox.handle_hello(std::min<std::size_t>(data().packet_bytes(), rail.data_packet_bytes),
                           hello.allowance, hello.eager_bytes);
  peer.inbox.start(hello.first_message);
  if (peers_.find_epoch(hello.epoch) == nullptr) peers_.index_epoch(peer);
  start_resolving(peer, ChannelKind::kData, rail.data);
}

// An answer to our HELLO. It also proves the peer: our connection id went to nobody else.
Verdict Engine::Impl::handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                                     std::span<const std::byte> body) {
  if (peer.phase == Phase::kGone || peer.phase == Phase::kResolving) return Verdict::kWrongState;
  wire::FrameReader reader(body);
  wire::Frame frame;
  if (!reader.next(frame) || frame.type != wire::FrameType::kHello) return Verdict::kBadFrame;
  const auto hello = wire::decode_hello(frame.data);
  if (!hello || !acceptable(*hello)) return Verdict::kBadFrame;
  if (peer.introduced && hello->reply_to != peer.theirs) {
    // The process that introduced itself before it had proved itself is not the one that answers.
    const bool restarted = peer.phase < Phase::kConnected && hello->epoch != peer.epoch;
    if (restarted) end_peer(peer, Status::kPeerRestarted);
    return Verdict::kWrongState;
  }
  if (!peer.introduced) {
    Peer* known = peers_.find_epoch(hello->epoch);
    if (known != nullptr && known->command_address == peer.command_address) {
      peer.replaces = known->id;
    } else if (known != nullptr && known->phase < Phase::kClosing) {
      // The same process under another address: it is connected already.
      end_peer(peer, Status::kRefused);
      return Verdict::kWrongState;
    }
    introduce(peer, *hello);
  }
  if (header.has(wire::kFlagAck)) {
    const Verdict verdict = handle_ack(now, peer, header, nullptr);
    if (verdict != Verdict::kAccepted) return verdict;
  }
  const Verdict verdict = handle_frames(now, peer, header, body);
  if (verdict != Verdict::kAccepted && verdict != Verdict::kDuplicate) return verdict;
  if (peer.phase == Phase::kCalling || peer.phase == Phase::kAnswering) prove(now, peer);
  peer.link.handle_ping();  // our ACK is the proof the peer waits for: at once
  note_heard(now, peer);
  schedule_ack(now, peer);
  return verdict;
}

// The peer has shown that it receives what we send it: messages may flow.
void Engine::Impl::prove(Instant now, Peer& peer) {
  Peer* before = peers_.find(peer.replaces);
  if (before != nullptr && before->phase != Phase::kGone) {
    const bool same = before->epoch == peer.epoch;
    end_peer(*before, same ? Status::kPeerClosed : Status::kPeerRestarted);
  }
  peers_.index_address(peer);
  peers_.index_epoch(peer);
  set_phase(peer, closing_ || peer.release_when_gone ? Phase::kClosing : Phase::kConnected);
  if (peer.called_us) callers_.push_back(peer.id);
  deliver_riders(now, peer);
  note_heard(now, peer);
  arm(now, peer);
  mark_ready(peer);
}

}  // namespace pullman::engine
