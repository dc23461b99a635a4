// HELLO, WELCOME, and the proof that both have arrived (wire.md 5).
#include "engine/handshake/handshake.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "engine/session/pending_hello.h"

namespace pullman::engine {

using wire::Verdict;

namespace {

// Returns a random number to start from. One in four is just before the low 32 bits wrap, so that
// wrapping is met every day and not once a year. It is never near zero, since windows reach below
// the first number.
std::uint64_t random_start(KeyedRandom& random) {
  const std::uint64_t high = (1 + random.next() % (1 << 20)) << 32;
  return random.next() % 4 == 0 ? high - random.next() % 64 - 1 + (std::uint64_t{1} << 32)
                                : high + (random.next() & 0xFFFFFFFF) + (std::uint64_t{1} << 32);
}

// Returns the HELLO frame of a HELLO or WELCOME; nothing if it is not valid (wire.md 3.4, 5.2, and
// 3.2 for the packet it came in).
std::optional<wire::Hello> read_hello(const wire::PacketHeader& header,
                                      std::span<const std::byte> body) {
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

}  // namespace

Connected Handshake::connect(Instant now, const nic::Address& address) {
  if (lifecycle_.closing()) return {Status::kClosed, {}};
  Peer* known = peers_.find_address(address);
  if (known != nullptr && known->phase < Phase::kClosing && !known->release_when_gone) {
    if (known->called_us && known->phase < Phase::kConnected) adopt_caller(*known);
    return {Status::kOk, known->id};
  }
  if (const Peer* peer = find_elsewhere(address)) return {Status::kOk, peer->id};
  if (!nics_.has_family_of(address)) return {Status::kUnreachable, {}};
  const Peer* peer = make_peer(now, address, nics_.module_for(address));
  if (peer == nullptr && accepts_.any_half_open()) {
    drop_oldest_caller();
    peer = make_peer(now, address, nics_.module_for(address));
  }
  if (peer == nullptr) return {Status::kTooManyPeers, {}};
  return {Status::kOk, peer->id};
}

// wire.md 2.4
std::uint32_t Handshake::new_proof() {
  for (;;) {
    if (const auto proof = static_cast<std::uint32_t>(random_.next()); proof != 0) return proof;
  }
}

Peer* Handshake::make_peer(Instant now, const nic::Address& command_address, std::uint8_t module) {
  lifecycle_.discard_oldest_gone();
  if (peers_.full()) drop_silent_callers(now);
  if (peers_.full() && !accepts_.any_half_open()) lifecycle_.ask_idle_peers(now);
  const PeerId id = peers_.next_id();
  if (id == kAnyPeer) return nullptr;
  const Channel& command = nics_.channel(module, ChannelKind::kCommand);
  const PeerSetup setup{.link = parts_.link,
                        .link_resources = parts_.link_resources,
                        .inbox_resources = parts_.inbox,
                        .outbox_resources = parts_.outbox,
                        .id = id,
                        .module = module,
                        .nic = &nics_[module],
                        .first_number = random_start(random_),
                        .first_message = random_start(random_),
                        .first_packet_bytes = std::min(kLeastCommandBytes, kLeastDataBytes) -
                                              kHelloBodyBytes - wire::kFrameHeadBytes -
                                              command.initial_bytes()};
  return &begin_peer(now, std::make_unique<Peer>(setup), command_address);
}

Peer& Handshake::begin_peer(Instant now, std::unique_ptr<Peer> made,
                            const nic::Address& command_address) noexcept {
  Peer& peer = peers_.put(std::move(made));
  peer.mine = {peer.id.index, new_proof()};
  peer.command_address = command_address;
  peer.home.remote = command_address;
  peer.born = ++peers_born_;
  peer.told = static_cast<std::uint8_t>(nics_.announced());
  peer.heard_at = peer.news_at = now;
  peers_.index_address(peer);
  resolver_.resolve(peer.home, ChannelKind::kCommand, command_address);
  lifecycle_.arm(now, peer);
  return peer;
}

void Handshake::handle_home_resolved(Instant now, Peer& peer) {
  if (peer.home.command_to == nic::kInvalidDestination) return;
  if (peer.introduced) {
    acks_.schedule(now, peer.home);
    if (has_work(peer) || peer.phase == Phase::kClosing) ready_.mark(peer);
  } else {
    const bool answers = peer.said != nullptr && !peer.said->elsewhere;
    if (!is_aimed(peer)) aim_home(peer);
    if (answers) answer(peer);
    call(now, peer);
  }
}

wire::Hello Handshake::describe(const Peer& peer, bool as_answer) const {
  const bool elsewhere = as_answer && peer.said->elsewhere;
  wire::Hello hello;
  hello.epoch = epoch_;
  hello.reply_to = peer.mine;
  hello.first_number = peer.home.link.window().first();
  hello.first_message = peer.first_message;
  hello.allowance = peer.inbox.allowance();
  hello.eager_bytes = parts_.eager_bytes;
  hello.nic = elsewhere ? peer.said->module : peer.home.module;
  hello.credit = credits_.credit_at(hello.nic);
  hello.call = as_answer ? peer.said->hello.call : peer.call;
  hello.host = host_;
  hello.called = elsewhere ? peer.said->address() : nic::Address(peer.home.remote);
  nics_.describe(peer.told, hello);
  return hello;
}

// Writes a HELLO frame, padded, and returns its length, at most kMaxHelloBytes and its head.
std::size_t Handshake::write_hello(const Peer& peer, bool as_answer, std::byte* out) const {
  const wire::Hello hello = describe(peer, as_answer);
  const std::size_t length = std::max(wire::encoded_bytes(hello), kHelloBodyBytes);
  std::fill_n(out, wire::kFrameHeadBytes + length, std::byte{0});
  wire::put_hello(out, length);
  wire::encode(hello, out + wire::kFrameHeadBytes);
  return wire::kFrameHeadBytes + length;
}

void Handshake::rewrite_hello(Peer& peer) const {
  write_hello(peer, false, peer.hello->bytes + wire::kHeaderBytes);
}

// Returns a packet with a HELLO frame; null if the pool has none.
Packet* Handshake::make_hello(Peer& peer, std::size_t packet_bytes) {
  Packet* packet = peer.outbox.control_packet(packet_bytes - wire::kHeaderBytes);
  if (packet == nullptr) return nullptr;
  packet->used += static_cast<std::uint32_t>(write_hello(peer, false, packet->end()));
  packet->wants_ack = true;  // if it leaves again as a sequenced packet (repeat_hello)
  return packet;
}

bool Handshake::may_call(const Peer& peer) const {
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

// Sends a HELLO, with the first small messages as early data (wire.md 5.4). A HELLO that is sent
// again has the same body, but for the NIC it leaves by.
void Handshake::call(Instant now, Peer& peer) {
  if (!may_call(peer)) return;
  if (peer.phase == Phase::kResolving)
    PeerLifecycle::set_phase(peer, Phase::kCalling, "its address is known");
  Channel* channel = with_room(peer.home, ChannelKind::kCommand);
  if (channel == nullptr || !peer.home.link.has_space()) return ready_.mark(peer);
  if (peer.hello == nullptr) {
    Packet* packet = make_hello(peer, channel->initial_packet_bytes());
    if (packet == nullptr) {
      ready_.note_blocked_on_pool();
      return ready_.mark(peer);
    }
    if (Packet* carried = peer.outbox.next_packet()) {
      const auto body = carried->body();
      PULLMAN_CHECK(carried->payload == nullptr &&
                    packet->used + body.size() <= channel->initial_packet_bytes());
      std::copy(body.begin(), body.end(), packet->end());
      packet->used += static_cast<std::uint32_t>(body.size());
      parts_.packets.give_back(*carried);
    }
    peer.hello = packet;
  }
  sender_.post(now, peer.home, *peer.hello, *channel, wire::PacketType::kHello);
}

// Sends a WELCOME, only in answer to a HELLO and never longer than it, so nobody can make us send
// more to an unproved address than it sent to us (wire.md 5.5). It is not retransmitted: if it is
// lost, the caller calls again.
void Handshake::answer(Peer& peer) {
  const PendingHello& said = *peer.said;
  const nic::Destination to = said.elsewhere ? said.to : peer.home.command_to;
  if (to == nic::kInvalidDestination) return;
  if (peer.phase != Phase::kAnswering)
    PeerLifecycle::set_phase(peer, Phase::kAnswering, "a HELLO is answered");
  peer.theirs = said.hello.reply_to;
  std::array<std::byte, wire::kHeaderBytes + wire::kFrameHeadBytes + wire::kMaxHelloBytes> bytes;
  const std::size_t length =
      wire::kHeaderBytes + write_hello(peer, true, &bytes[wire::kHeaderBytes]);
  if (peer.called_us && length > said.header.length) return;
  const std::uint8_t module = said.elsewhere ? said.module : peer.home.module;
  peer.home.link.write_welcome(peer.theirs, credits_.credit_at(module), said.header.number,
                               {bytes.data(), length});
  if (config_.checksum) wire::seal({bytes.data(), length}, {});
  nics_.channel(module, ChannelKind::kCommand)
      .send_unremembered({bytes.data(), length}, to, {.key = said.key});
}

Verdict Handshake::handle_hello(Instant now, const wire::PacketHeader& header, std::uint8_t key,
                                wire::FrameList& frames, std::span<const std::byte> body) {
  const auto hello = read_hello(header, body);
  if (!hello) return Verdict::kBadFrame;
  const bool refuses = lifecycle_.closing() && hello->epoch != epoch_;  // but not its own calls
  if (refuses || !nics_.is_called(*hello)) return Verdict::kWrongState;
  if (our_call_wins(*hello)) return Verdict::kDuplicate;
  Peer* peer = peer_for_hello(now, *hello);
  if (peer == nullptr) return Verdict::kOverLimit;
  if (peer->phase == Phase::kGone) return Verdict::kWrongState;
  // A HELLO cannot ask for its ACK (wire.md 2.3), and perhaps no packet follows its early data that
  // does: so it is taken to ask.
  wire::PacketHeader asks = header;
  if (!frames.is_alone()) asks.flags |= wire::kFlagAckSoon;
  if (peer->introduced && peer->said == nullptr) {
    if (is_protected() && peer->home.link.judge(header) == reliability::Arrival::kDuplicate) {
      return Verdict::kDuplicate;  // a copy (wire.md 12.6)
    }
    // The peer has proved that it means this connection: its HELLO is a packet like others.
    const Verdict verdict = frame_handler_.handle(now, peer->home, asks, frames);
    acks_.schedule(now, peer->home);
    return verdict;
  }
  const bool news = note_hello(now, *peer, asks, key, *hello, body);
  if (is_protected() && !news) return Verdict::kDuplicate;
  if (peer->introduced) {
    // Its early data waits: until the peer has heard from us it may come to mean another
    // connection.
    peer->home.link.handle_ping();
    credits_.note_heard(now, *peer);
    acks_.schedule(now, peer->home);
    return Verdict::kAccepted;
  }
  answer(*peer);
  return Verdict::kAccepted;
}

// Lets what the peer said of itself count from now on.
void Handshake::introduce(Peer& peer) {
  auto& said = peer.said->hello;
  nics_.forget_own_addresses(said.host, {said.nics.data(), said.nic_count});
  const wire::Hello& hello = said;
  const wire::NicInfo& nic = hello.nics[hello.nic];
  peer.introduced = true;
  peer.key = peer.said->key;
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
  memory_.introduce(peer, hello.host);
  exchange_.note_names(peer, {hello.nics.data(), hello.nic_count});
  if (peers_.find_epoch(peer.epoch) == nullptr) peers_.index_epoch(peer);
  resolver_.resolve(peer.home, ChannelKind::kData, nic.data);
  peer.home.there = hello.nic;
  poller_.attend(peer.home.module);
  if (nics_.several_nics(peer.told) && wire::several_nics({hello.nics.data(), hello.nic_count})) {
    rails_.start(peer, {hello.nics.data(), hello.nic_count});
  }
}

// Returns whether this answer to our call may introduce the peer. The process may be known already.
bool Handshake::may_introduce(Peer& peer, const wire::Hello& hello) {
  Peer* known = peers_.find_epoch(hello.epoch);
  if (known == nullptr) return true;
  if (known->called_us && known->phase < Phase::kClosing && epoch_ > hello.epoch &&
      known->command_address == peer.command_address) {
    // It called us meanwhile, and its call counts (wire.md 5.6).
    lifecycle_.end(peer, Status::kPeerRestarted);
    return false;
  }
  if (known->command_address == peer.command_address) {
    peer.replaces = known->id;
  } else if (known->phase < Phase::kClosing) {
    // It is the same process under another address, and connected already.
    lifecycle_.end(peer, Status::kRefused);
    return false;
  }
  return true;
}

// Returns whether to drop this answer to our call. Both calls have been answered, on two pairs of
// NICs, and that of the lower epoch counts (wire.md 5.6), or each end would take the pair of its
// own call for rail 0. At most kMost answers are dropped, since we may hear the other's call while
// our answer does not get there.
bool Handshake::decline(Peer& peer, const wire::Hello& hello) const {
  constexpr std::uint8_t kMost = 2;
  const bool both = peer.phase == Phase::kAnswering && peer.said != nullptr &&
                    peer.said->is(hello.epoch, hello.reply_to) && peer.said->elsewhere;
  return both && epoch_ > hello.epoch && peer.said->declined++ < kMost;
}

// Handles an answer to our HELLO. It also proves the peer: our connection id went to nobody else,
// whatever others have said of themselves meanwhile.
Verdict Handshake::handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                                  std::uint8_t key, std::span<const std::byte> body) {
  if (peer.phase == Phase::kGone || peer.phase == Phase::kResolving) return Verdict::kWrongState;
  const auto hello = read_hello(header, body);
  if (!hello) return Verdict::kBadFrame;
  if (!peer.introduced && nics_.leads_here(hello->host, hello->nics[hello->nic].command)) {
    return Verdict::kWrongState;
  }
  if (peer.introduced ? hello->reply_to != peer.theirs : peer.called_us) {
    return Verdict::kWrongState;
  }
  // It answers an earlier call: we would not mean the same rail (wire.md 5.10).
  if (!peer.introduced && hello->call != peer.call) return Verdict::kWrongState;
  const Verdict verdict = peer.introduced ? Verdict::kDuplicate : Verdict::kAccepted;
  // Perhaps it is a copy (wire.md 12.6). If the peer lacks our proof, our timeout gives it again.
  if (is_protected() && peer.introduced) return verdict;
  if (!peer.introduced) {
    if (!may_introduce(peer, *hello) || decline(peer, *hello)) return Verdict::kWrongState;
    if (peer.said == nullptr || !peer.said->is(hello->epoch, hello->reply_to)) {
      forget_hello(resolver_, parts_.packets, peer);
      peer.said = std::make_unique<PendingHello>();
    }
    aim_answer_at_home(resolver_, peer);
    peer.said->hello = *hello;
    peer.said->key = key;
    if (peer.hello != nullptr) {
      peer.home.link.handle_answer(now, *peer.hello, header.cumulative);
    }
    prove(now, peer);
    drop_superseded(peer);
  }
  peer.home.link.handle_ping();  // our ACK is the proof that the peer waits for, so it is urgent
  credits_.note_heard(now, peer);
  acks_.schedule(now, peer.home);
  return verdict;
}

void Handshake::handle_proof(Instant now, Peer& peer) {
  const bool uncalled = !peer.introduced;
  if (uncalled) {
    adopt_answer(peer);
    prove(now, peer);
  }
  const bool crossed = peer.said->crossed;
  deliver_early_data(now, peer);
  if (uncalled && peer.hello != nullptr) repeat_hello(now, peer, crossed);
}

// The peer answered our WELCOME, not our HELLO. If the two HELLOs crossed it ignored ours (wire.md
// 5.6): the early data of ours leaves again at once, and not at its timeout.
void Handshake::repeat_hello(Instant now, Peer& peer, bool crossed) {
  peer.home.link.handle_ping();  // the peer waits for our proof
  acks_.schedule(now, peer.home);
  Packet& hello = *peer.hello;
  const bool in_flight = hello.state == channel::PacketState::kInFlight && !hello.in_channel;
  if (!in_flight || epoch_ <= peer.epoch || !crossed) return;
  Channel* channel = with_room(peer.home, ChannelKind::kCommand);
  if (channel == nullptr) return;
  peer.home.link.abandon(hello);
  sender_.post(now, peer.home, hello, *channel, wire::PacketType::kSequenced);
}

// The peer has shown that it receives what we send it: messages may flow.
void Handshake::prove(Instant now, Peer& peer) {
  Peer* before = peers_.find(peer.replaces);
  if (before != nullptr && before->phase != Phase::kGone) {
    const bool same = before->epoch == peer.said->hello.epoch;
    lifecycle_.end(*before, same ? Status::kPeerClosed : Status::kPeerRestarted);
  }
  introduce(peer);
  const bool leaves = lifecycle_.closing() || peer.release_when_gone;
  PeerLifecycle::set_phase(peer, leaves ? Phase::kClosing : Phase::kConnected,
                           "it has proved itself");
  if (peer.called_us) {
    accepts_.remove_half_open(peer);
    accepts_.announce(peer);
  }
  credits_.note_heard(now, peer);
  lifecycle_.arm(now, peer);
  if (peer.told != nics_.announced()) peer.nics_due = true;
  ready_.mark(peer);
}

}  // namespace pullman::engine
