// How peers meet (wire.md 5): HELLO, WELCOME, and the proof that both got there. Cold.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/log.h"
#include "engine/engine_impl.h"

namespace pullman::engine {
namespace {

// What a resolve() is for: the peer, the rail, and the channel that will use the destination.
std::uint64_t cookie_of(PeerId id, std::size_t rail, ChannelKind kind) {
  return std::uint64_t{id.index} << 32 | (id.generation & 0xFFFFFF) << 8 | rail << 1 |
         static_cast<std::uint64_t>(kind);
}
std::size_t rail_in(std::uint64_t cookie) {
  return (cookie & 0xFF) >> 1;
}
// In place of a rail: that it is for an answer elsewhere, and for which.
std::size_t place_of_answer(const Peer& peer) {
  return wire::kMaxRails + peer.aims % (128 - wire::kMaxRails);
}

// Numbers start anywhere; in one of four cases just before the low 32 bits wrap, so that wrapping
// is met every day and not once a year. Never near zero: windows reach below the first number.
std::uint64_t random_start(KeyedRandom& random) {
  const std::uint64_t high = (1 + random.next() % (1 << 20)) << 32;
  return random.next() % 4 == 0 ? high - random.next() % 64 - 1 + (std::uint64_t{1} << 32)
                                : high + (random.next() & 0xFFFFFFFF) + (std::uint64_t{1} << 32);
}

}  // namespace

// wire.md 2.4
std::uint32_t Engine::Impl::new_proof() {
  for (;;) {
    if (const auto proof = static_cast<std::uint32_t>(random_.next()); proof != 0) return proof;
  }
}

Peer* Engine::Impl::make_peer(Instant now, const nic::Address& command_address,
                              std::uint8_t module) {
  while (peers_.full() && !gone_.empty()) {
    Peer* oldest = peers_.find(gone_.front());
    gone_.pop_front();
    if (oldest != nullptr) discard(*oldest);
  }
  if (peers_.full()) drop_silent_callers(now);
  if (peers_.full() && half_open_.empty()) ask_idle_peers(now);
  const PeerId id = peers_.next_id();
  if (id == kAnyPeer) return nullptr;
  const PeerSetup setup{.link = link_options_,
                        .link_resources = link_resources_,
                        .inbox_resources = inbox_resources_,
                        .outbox_resources = outbox_resources_,
                        .id = id,
                        .module = module,
                        .nic = modules_[module].get(),
                        .first_number = random_start(random_),
                        .first_message = random_start(random_),
                        .first_packet_bytes = std::min(kLeastCommandBytes, kLeastDataBytes) -
                                              kHelloBodyBytes - wire::kFrameHeadBytes};
  return &begin_peer(now, std::make_unique<Peer>(setup), command_address);
}

Peer& Engine::Impl::begin_peer(Instant now, std::unique_ptr<Peer> made,
                               const nic::Address& command_address) noexcept {
  Peer& peer = peers_.put(std::move(made));
  peer.mine = {peer.id.index, new_proof()};
  peer.command_address = command_address;
  peer.home.remote = command_address;
  peer.born = ++peers_born_;
  peer.told = static_cast<std::uint8_t>(nics_told_);
  peer.heard_at = peer.news_at = now;
  peers_.index_address(peer);
  start_resolving(peer.home, ChannelKind::kCommand, command_address);
  arm(now, peer);
  return peer;
}

void Engine::Impl::start_resolving(Rail& rail, ChannelKind kind, const nic::Address& address) {
  rail.resolving |= 3u & bit_of(kind);
  ++resolving_;
  ++resolving_at_[rail.module];
  module_of(rail).channel(kind).port().resolve(address, cookie_of(rail.peer.id, rail.number, kind));
}

void Engine::Impl::resolve_answer(Peer& peer) {
  PendingHello& said = *peer.said;
  ++peer.aims;
  said.resolving = true;
  said.asked = said.hello.nic;
  ++resolving_;
  ++resolving_at_[said.module];
  modules_[said.module]
      ->channel(ChannelKind::kCommand)
      .port()
      .resolve(said.address(), cookie_of(peer.id, place_of_answer(peer), ChannelKind::kCommand));
}

void Engine::Impl::handle_events(Instant now) {
  for (std::uint32_t bits = all_; bits != 0; bits &= bits - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(bits));
    std::size_t count = 0;
    do {
      count = row_[place]->port().poll_events(events_);
      for (std::size_t i = 0; i < count; ++i) {
        handle_event(now, place % kRow, row_[place]->kind(), events_[i]);
      }
    } while (count == events_.size());
  }
}

void Engine::Impl::handle_event(Instant now, std::size_t module, ChannelKind kind,
                                const nic::PortEvent& event) {
  using Kind = nic::PortEvent::Kind;
  switch (event.kind) {
    case Kind::kResolved:
    case Kind::kResolveFailed:
      --resolving_;
      --resolving_at_[module];
      if (event.cookie == kUnknownPeerCookie) return repeat_unknown_peer_reply(event);
      return handle_resolution(now, module, kind, event);
    case Kind::kRefused:
      return handle_refusal(now, kind, event);
    case Kind::kLinkDown:
    case Kind::kAddressGone:
    case Kind::kLinkUp:
      // Both channels of a NIC say it: once is enough.
      if (kind == ChannelKind::kCommand) handle_link_event(now, module, event.kind);
      return;
    case Kind::kFailed:
      return handle_link_event(now, module, event.kind);
  }
}

void Engine::Impl::handle_refusal(Instant now, ChannelKind kind, const nic::PortEvent& event) {
  Peer* peer = peer_meant(kind, event.cookie);
  if (peer == nullptr) return;
  peer->refused_at = now;
  const std::size_t place = rail_in(event.cookie);
  const Rail* rail = place < wire::kMaxRails ? peer->rail(place) : nullptr;
  if (rail != nullptr) note_refusal(now, *rail, event);
}

// The peer for which an address was resolved with that cookie; null if it is no more.
Peer* Engine::Impl::peer_meant(ChannelKind kind, std::uint64_t cookie) const {
  const auto index = static_cast<std::uint32_t>(cookie >> 32);
  Peer* peer = index < peers_.slots() ? peers_.at(index) : nullptr;
  const bool current = peer != nullptr && peer->phase != Phase::kGone &&
                       cookie_of(peer->id, rail_in(cookie), kind) == cookie;
  return current ? peer : nullptr;
}

void Engine::Impl::handle_resolution(Instant now, std::size_t module, ChannelKind kind,
                                     const nic::PortEvent& event) {
  const bool resolved = event.kind == nic::PortEvent::Kind::kResolved;
  Peer* peer = peer_meant(kind, event.cookie);
  const std::size_t place = rail_in(event.cookie);
  const bool of_answer = peer != nullptr && peer->said != nullptr && peer->said->resolving;
  if (of_answer && place == place_of_answer(*peer)) {
    return handle_answer_resolved(*peer, module, event);
  }
  Rail* rail = peer != nullptr && place < wire::kMaxRails ? peer->rail(place) : nullptr;
  nic::Destination* to = rail == nullptr || rail->module != module ? nullptr
                         : kind == ChannelKind::kCommand           ? &rail->command_to
                                                                   : &rail->data_to;
  if (to != nullptr) rail->resolving &= 3u & ~bit_of(kind);
  if (to != nullptr && (rail->stale & bit_of(kind)) != 0) {
    rail->stale &= 3u & ~bit_of(kind);
    if (resolved) modules_[module]->channel(kind).port().forget(event.to);
    return aim(*rail);
  }
  if (to == nullptr || *to != nic::kInvalidDestination) {  // nobody waits for it any more
    if (resolved) modules_[module]->channel(kind).port().forget(event.to);
    return;
  }
  if (resolved) *to = event.to;
  const bool left = peer->rails != nullptr && !usable(*rail);
  if (rail->number != 0 || left) return handle_rail_event(now, *rail, resolved);
  if (!resolved) return handle_no_way(*peer);
  handle_resolved(now, *peer);
}

// A destination came in: the next step of the handshake that was waiting for it.
void Engine::Impl::handle_resolved(Instant now, Peer& peer) {
  if (peer.home.command_to == nic::kInvalidDestination) return;
  if (peer.introduced) {
    schedule_ack(now, peer.home);
    if (has_work(peer) || peer.phase == Phase::kClosing) mark_ready(peer);
  } else {
    const bool answers = peer.said != nullptr && !peer.said->elsewhere;
    if (!is_aimed(peer)) aim_home(peer);
    if (answers) answer(peer);
    call(now, peer);
  }
}

wire::Hello Engine::Impl::describe(const Peer& peer, bool as_answer) const {
  const bool elsewhere = as_answer && peer.said->elsewhere;
  wire::Hello hello;
  hello.epoch = epoch_;
  hello.reply_to = peer.mine;
  hello.first_number = peer.home.link.window().first();
  hello.first_message = peer.first_message;
  hello.allowance = peer.inbox.allowance();
  hello.eager_bytes = eager_bytes_;
  hello.nic = elsewhere ? peer.said->module : peer.home.module;
  hello.credit = credits_[hello.nic];
  hello.call = as_answer ? peer.said->hello.call : peer.call;
  hello.host = host_;
  hello.called = elsewhere ? peer.said->address() : nic::Address(peer.home.remote);
  for (std::size_t i = 0; i < peer.told; ++i) {
    hello.nics[i] = describe(*modules_[i]);
    hello.nics[i].device = static_cast<std::uint8_t>(first_address_of(i));
  }
  hello.nic_count = peer.told;
  return hello;
}

// All addresses of a NIC go by the number of the first of them, and its last resort with them.
std::size_t Engine::Impl::first_address_of(std::size_t module) const {
  std::size_t first = 0;
  while (modules_[first]->device().name != modules_[module]->device().name) ++first;
  return first;
}

// Of the first `told` modules: rails are between NICs, not between addresses of one.
bool Engine::Impl::several_nics(std::size_t told) const {
  return std::any_of(modules_.begin(), modules_.begin() + told, [&](const auto& module) {
    const nic::Device& first = modules_.front()->device();
    return module->device().name != first.name || module->device().stream != first.stream;
  });
}

wire::NicInfo Engine::Impl::describe(const channel::Module& module) const {
  const Channel& command = module.channel(ChannelKind::kCommand);
  const Channel& data = module.channel(ChannelKind::kData);
  return {.command_packet_bytes = static_cast<std::uint16_t>(command.packet_bytes()),
          .data_packet_bytes = static_cast<std::uint16_t>(data.packet_bytes()),
          .mbps = module.device().mbps,
          .device = 0,
          .distance = module.device().distance,
          .stream = module.device().stream,
          .command = command.port().address(),
          .data = data.port().address()};
}

// A HELLO has one length, whoever sends it (wire.md 5.5), and must find room in any packet: it
// lists those that fit. Of IPv4 that is all of them, of IPv6 four, of the longest opaque addresses
// one.
std::size_t Engine::Impl::nics_to_tell() const {
  wire::Hello hello;
  for (const auto& module : modules_) {
    hello.nics[hello.nic_count] = describe(*module);
    const nic::Address& command = hello.nics[hello.nic_count++].command;
    if (command.length > hello.called.length) hello.called = command;
    if (wire::encoded_bytes(hello) > kHelloBodyBytes) return std::max(hello.nic_count - 1, 1);
  }
  return hello.nic_count;
}

// A HELLO frame, padded; returns its length, at most kMaxHelloBytes and its head.
std::size_t Engine::Impl::write_hello(const Peer& peer, bool as_answer, std::byte* out) const {
  const wire::Hello hello = describe(peer, as_answer);
  const std::size_t length = std::max(wire::encoded_bytes(hello), kHelloBodyBytes);
  std::fill_n(out, wire::kFrameHeadBytes + length, std::byte{0});
  wire::put_hello(out, length);
  wire::encode(hello, out + wire::kFrameHeadBytes);
  return wire::kFrameHeadBytes + length;
}

// A packet with a HELLO frame; null when there is none to be had.
Packet* Engine::Impl::make_hello(Peer& peer, std::size_t packet_bytes) {
  Packet* packet = peer.outbox.control_packet(packet_bytes - wire::kHeaderBytes);
  if (packet == nullptr) return nullptr;
  packet->used += static_cast<std::uint32_t>(write_hello(peer, false, packet->end()));
  packet->wants_ack = true;  // if it leaves again as another packet (repeat_hello)
  return packet;
}

// Whether a HELLO is to be sent now. A connection to a process from which an earlier one is still
// taking leave waits until that has ended: there is one at a time (wire.md 5.8).
bool Engine::Impl::may_call(const Peer& peer) const {
  if (peer.called_us || peer.phase >= Phase::kConnected ||
      peer.home.command_to == nic::kInvalidDestination)
    return false;
  if (peer.hello != nullptr && peer.hello->state != channel::PacketState::kQueued) return false;
  bool is_first = true;
  peers_.for_each_at(peer.command_address, [&](const Peer& other) {
    const bool unproved = other.called_us && other.phase < Phase::kConnected;
    if (other.is_older_than(peer) && !unproved) is_first = false;
  });
  return is_first;
}

// Sends a HELLO. The first small messages ride along (wire.md 5.4); a HELLO sent again has the same
// body, but for the NIC it leaves by.
void Engine::Impl::call(Instant now, Peer& peer) {
  if (!may_call(peer)) return;
  if (peer.phase == Phase::kResolving) set_phase(peer, Phase::kCalling);
  Channel* channel = with_room(peer.home, ChannelKind::kCommand);
  if (channel == nullptr || !peer.home.link.has_space()) return mark_ready(peer);
  if (peer.hello == nullptr) {
    Packet* packet = make_hello(peer, channel->packet_bytes());
    if (packet == nullptr) {
      is_blocked_on_pool();
      return mark_ready(peer);
    }
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
  post(now, peer.home, *peer.hello, *channel, wire::PacketType::kHello);
}

// Sends a WELCOME: only ever in answer to a HELLO, and never longer than it was, so nobody can make
// us send more to an unproved address than it sent to us (wire.md 5.5). Nobody remembers it: if it
// is lost, the caller calls again.
void Engine::Impl::answer(Peer& peer) {
  const PendingHello& said = *peer.said;
  const nic::Destination to = said.elsewhere ? said.to : peer.home.command_to;
  if (to == nic::kInvalidDestination) return;
  if (peer.phase != Phase::kAnswering) set_phase(peer, Phase::kAnswering);
  peer.theirs = said.hello.reply_to;
  std::array<std::byte, wire::kHeaderBytes + wire::kFrameHeadBytes + wire::kMaxHelloBytes> bytes;
  const std::size_t length =
      wire::kHeaderBytes + write_hello(peer, true, &bytes[wire::kHeaderBytes]);
  if (peer.called_us && length > said.header.length) return;
  const std::uint8_t module = said.elsewhere ? said.module : peer.home.module;
  peer.home.link.write_welcome(peer.theirs, credits_[module], said.header.number,
                               {bytes.data(), length});
  if (config_.checksum) wire::seal({bytes.data(), length}, {});
  modules_[module]->channel(ChannelKind::kCommand).send_unremembered({bytes.data(), length}, to);
}

// The HELLO frame of a HELLO or WELCOME; nothing if it says what it must not (wire.md 3.4, 5.2, and
// 3.2 for the packet it came in).
std::optional<wire::Hello> Engine::Impl::read_hello(const wire::PacketHeader& header,
                                                    std::span<const std::byte> body) const {
  wire::FrameReader reader(body);
  wire::Frame frame;
  if (!reader.next(frame) || frame.type != wire::FrameType::kHello) return std::nullopt;
  const auto hello = wire::decode_hello(frame.data);
  if (!hello) return std::nullopt;
  const wire::NicInfo& nic = hello->nics[hello->nic];
  const PacketNumber number = expand(header.number, hello->first_number);
  const bool acceptable =
      nic.command_packet_bytes >= kLeastCommandBytes && nic.data_packet_bytes >= kLeastDataBytes &&
      hello->eager_bytes >= message::kLeastEager && hello->allowance >= message::kLeastAllowance &&
      hello->reply_to.proof != 0 && hello->first_number >> 32 != 0 &&
      hello->first_message >> 32 != 0 && number - hello->first_number < wire::kWindow;
  return acceptable ? hello : std::nullopt;
}

Verdict Engine::Impl::handle_hello(Instant now, const wire::PacketHeader& header,
                                   std::span<const std::byte> body) {
  const auto hello = read_hello(header, body);
  if (!hello) return Verdict::kBadFrame;
  if (closing_ || !module_called(*hello)) return Verdict::kWrongState;
  // It could not be answered where it called from.
  if (leads_here(hello->host, hello->nics[hello->nic].command)) return Verdict::kWrongState;
  if (our_call_wins(*hello)) return Verdict::kDuplicate;
  Peer* peer = peer_for_hello(now, *hello);
  if (peer == nullptr) return Verdict::kOverLimit;
  if (peer->phase == Phase::kGone) return Verdict::kWrongState;
  // A HELLO cannot ask (wire.md 2.3), but nothing may follow what rides with it that would.
  wire::PacketHeader asks = header;
  if (!frames_.is_alone()) asks.flags |= wire::kFlagAckSoon;
  if (peer->introduced && peer->said == nullptr) {
    // It has proved that it means this connection: a packet like others.
    const Verdict verdict = handle_frames(now, peer->home, asks);
    schedule_ack(now, peer->home);
    return verdict;
  }
  note_said(now, *peer, asks, *hello, body);
  if (peer->introduced) {
    // What rides along waits: before it has heard from us it may come to mean another connection.
    peer->home.link.handle_ping();
    note_heard(now, *peer);
    schedule_ack(now, peer->home);
    return Verdict::kAccepted;
  }
  answer(*peer);
  return Verdict::kAccepted;
}

// What the peer said of itself counts from now on.
void Engine::Impl::introduce(Peer& peer) {
  auto& said = peer.said->hello;
  forget_own_addresses(said.host, {said.nics.data(), said.nic_count});
  const wire::Hello& hello = said;
  const wire::NicInfo& nic = hello.nics[hello.nic];
  peer.introduced = true;
  peer.epoch = hello.epoch;
  peer.theirs = hello.reply_to;
  peer.home.command_bytes = static_cast<std::uint16_t>(
      std::min<std::size_t>(command(peer.home).packet_bytes(), nic.command_packet_bytes));
  peer.first_number_there = hello.first_number;
  peer.first_credit = hello.credit;
  peer.home.link.handle_hello(hello.first_number, hello.credit);
  auto& path = peer.home.link.path();
  path.start(std::min<std::size_t>(data(peer.home).packet_bytes(), nic.data_packet_bytes));
  peer.home.packet_bytes = static_cast<std::uint16_t>(path.bytes());
  peer.outbox.handle_hello(path.bytes(), hello.allowance, hello.eager_bytes);
  peer.inbox.start(hello.first_message);
  peers_.index_address(peer);
  note_names(peer, {hello.nics.data(), hello.nic_count});
  if (peers_.find_epoch(peer.epoch) == nullptr) peers_.index_epoch(peer);
  start_resolving(peer.home, ChannelKind::kData, nic.data);
  peer.home.there = hello.nic;
  attend(peer.home.module);
  if (several_nics(peer.told) && wire::several_nics({hello.nics.data(), hello.nic_count})) {
    start_rails(peer, {hello.nics.data(), hello.nic_count});
  }
}

// What it is called, if it is believed.
void Engine::Impl::note_names(Peer& peer, std::span<const wire::NicInfo> nics) {
  if (!config_.believe_addresses || nics.size() <= 1) return;
  auto& named = news_of(peer).named;
  named.clear();
  named.reserve(nics.size());
  for (const wire::NicInfo& nic : nics) {
    if (nic.command.kind != 0) named.push_back(nic.command);
  }
}

// Whether this answer to our call may be the peer's introduction. The process may be known.
bool Engine::Impl::may_introduce(Peer& peer, const wire::Hello& hello) {
  Peer* known = peers_.find_epoch(hello.epoch);
  if (known == nullptr) return true;
  if (known->called_us && known->phase < Phase::kClosing && epoch_ > hello.epoch &&
      known->command_address == peer.command_address) {
    // It called us meanwhile, and its call counts (wire.md 5.6).
    end_peer(peer, Status::kPeerRestarted);
    return false;
  }
  if (known->command_address == peer.command_address) {
    peer.replaces = known->id;
  } else if (known->phase < Phase::kClosing) {
    // The same process under another address: it is connected already.
    end_peer(peer, Status::kRefused);
    return false;
  }
  return true;
}

// Both calls have been answered, on two pairs of NICs: that of the lower epoch counts
// (wire.md 5.6), or each end would take the pair of its own call for rail 0. Not for ever: the
// other's call may be heard here, and our answer not there: they are counted.
bool Engine::Impl::decline(Peer& peer, const wire::Hello& hello) const {
  constexpr std::uint8_t kMost = 2;
  const bool both = peer.phase == Phase::kAnswering && peer.said != nullptr &&
                    peer.said->is(hello.epoch, hello.reply_to) && peer.said->elsewhere;
  return both && epoch_ > hello.epoch && peer.said->declined++ < kMost;
}

// An answer to our HELLO. It also proves the peer: our connection id went to nobody else, whatever
// others have said of themselves meanwhile.
Verdict Engine::Impl::handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                                     std::span<const std::byte> body) {
  if (peer.phase == Phase::kGone || peer.phase == Phase::kResolving) return Verdict::kWrongState;
  const auto hello = read_hello(header, body);
  if (!hello) return Verdict::kBadFrame;
  if (!peer.introduced && leads_here(hello->host, hello->nics[hello->nic].command)) {
    return Verdict::kWrongState;
  }
  if (peer.introduced ? hello->reply_to != peer.theirs : peer.called_us) {
    return Verdict::kWrongState;
  }
  // An answer to an earlier call: we would not mean the same rail (wire.md 5.10).
  if (!peer.introduced && hello->call != peer.call) return Verdict::kWrongState;
  const Verdict verdict = peer.introduced ? Verdict::kDuplicate : Verdict::kAccepted;
  if (!peer.introduced) {
    if (!may_introduce(peer, *hello) || decline(peer, *hello)) return Verdict::kWrongState;
    if (peer.said == nullptr || !peer.said->is(hello->epoch, hello->reply_to)) {
      forget_said(peer);
      peer.said = std::make_unique<PendingHello>();
    }
    answer_at_home(peer);
    peer.said->hello = *hello;
    if (peer.hello != nullptr) {
      peer.home.link.handle_answer(now, *peer.hello, header.cumulative);
    }
    prove(now, peer);
    drop_superseded(peer);
  }
  peer.home.link.handle_ping();  // our ACK is the proof the peer waits for: at once
  note_heard(now, peer);
  schedule_ack(now, peer.home);
  return verdict;
}

// The first packet that knows our proof: its sender means this connection, and what rode with its
// HELLO is for it.
void Engine::Impl::handle_proof(Instant now, Peer& peer) {
  const bool uncalled = !peer.introduced;
  if (uncalled) {
    adopt_answer(peer);
    prove(now, peer);
  }
  const bool crossed = peer.said->crossed;
  deliver_early_data(now, peer);
  if (uncalled && peer.hello != nullptr) repeat_hello(now, peer, crossed);
}

// It answered our WELCOME, not our HELLO. If the two HELLOs crossed it ignored ours (wire.md 5.6):
// what rode with that leaves again at once, and not at its timeout.
void Engine::Impl::repeat_hello(Instant now, Peer& peer, bool crossed) {
  peer.home.link.handle_ping();  // it waits for our proof
  schedule_ack(now, peer.home);
  Packet& hello = *peer.hello;
  const bool in_flight = hello.state == channel::PacketState::kInFlight && !hello.in_channel;
  if (!in_flight || epoch_ <= peer.epoch || !crossed) return;
  Channel* channel = with_room(peer.home, ChannelKind::kCommand);
  if (channel == nullptr) return;
  peer.home.link.abandon(hello);
  post(now, peer.home, hello, *channel, wire::PacketType::kSequenced);
}

// The peer has shown that it receives what we send it: messages may flow.
void Engine::Impl::prove(Instant now, Peer& peer) {
  Peer* before = peers_.find(peer.replaces);
  if (before != nullptr && before->phase != Phase::kGone) {
    const bool same = before->epoch == peer.epoch;
    end_peer(*before, same ? Status::kPeerClosed : Status::kPeerRestarted);
  }
  introduce(peer);
  set_phase(peer, closing_ || peer.release_when_gone ? Phase::kClosing : Phase::kConnected);
  if (peer.called_us) {
    leave_half_open(peer);
    announce(peer);
  }
  note_heard(now, peer);
  arm(now, peer);
  if (peer.told != nics_told_) peer.nics_due = true;
  mark_ready(peer);
}

}  // namespace pullman::engine
