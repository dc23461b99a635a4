// Takes datagrams apart into frames. A datagram whose syntax is wrong has no effect at all; the
// ACK, the proof of the sender and the frames of another one take effect each for itself.
#include "engine/receiver.h"

#include <bit>

#include "engine/drop_warnings.h"

namespace pullman::engine {

using reliability::AckNeed;
using reliability::Arrival;
using wire::Verdict;

std::size_t Receiver::receive_all(Instant now) {
  credits_.begin_turn(now);
  poller_.begin_turn();
  backpressure_.begin_turn(now, inbox_counters_, poller_.has_deferred());
  std::size_t received = 0;
  // Command channels come first in the row.
  const std::uint32_t due = poller_.due(now);
  for (std::uint32_t bits = due; bits != 0; bits &= bits - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(bits));
    Channel& channel = nics_.at(place);
    if (const auto batch = channel.receive(); !batch.empty()) [[likely]] {
      received += take_batch(now, place, batch);
    } else if (channel.quiet()) {
      poller_.note_quiet(now, channel);
    }
  }
  if (clock_.catches_up() && received == 0 && poller_.are_all(due)) [[unlikely]]
    clock_.note_empty();
  poller_.end_turn(received);
  return received;
}

// Handles a batch and returns how many packets it took. The rest is left for the next turn if the
// program is to post receives first.
std::size_t Receiver::take_batch(Instant now, std::size_t place,
                                 std::span<const nic::Incoming> batch) {
  Channel& channel = nics_.at(place);
  const std::uint64_t unexpected = inbox_counters_.unexpected;
  poller_.note_active(place);
  place_ = place;
  slot_ = place % NicTable::kRow;
  batch_ = batch;
  came_ = batch.size() == 1 ? Came::kAlone : Came::kTogether;
  if (poller_.has_deferred(channel)) [[unlikely]]
    came_ = Came::kBehindDeferred;
  const std::uint64_t received = inbox_counters_.messages;
  auto rest = batch;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    if (inbox_counters_.unexpected != unexpected && backpressure_.due(inbox_counters_)) [[unlikely]]
      break;
    wire::PacketHeader header;
    const Verdict verdict = handle_datagram(now, rest.front().bytes, header);
    if (verdict == Verdict::kAccepted) [[likely]] {
      ++stats_.packets_received;
      if (rest.size() > 1) rest = rest.subspan(take_run(now, header, rest));
    } else if (verdict == Verdict::kDuplicate) {
      ++stats_.duplicate_packets;
    } else {
      handle_drop(now, verdict, rest.front().bytes);
    }
  }
  if (came_ == Came::kTogether && inbox_counters_.messages == received)
    ack_handler_.handle_deferred(now);
  poller_.set_deferred(channel, !rest.empty());
  channel.keep(rest.size());
  batch_ = {};
  const std::size_t taken = batch.size() - rest.size();
  channel.give_back(batch.first(taken));
  return taken;
}

void Receiver::handle_drop(Instant now, Verdict why, std::span<const std::byte> datagram) {
  ++stats_.dropped_packets;
  if (++stats_.dropped_by_reason[static_cast<std::size_t>(why)] == 1) {
    warn_of_drop(why, protection_ == nullptr ? wire::Protection::kOff : protection_->mode());
  }
  if (why == Verdict::kOtherProtection) mismatch_.handle(now, slot_, datagram, frames_);
}

// Checks a datagram in the order of wire.md 1.3 and writes its header to `header`.
Verdict Receiver::handle_datagram(Instant now, std::span<const std::byte> datagram,
                                  wire::PacketHeader& header) {
  std::span<const std::byte> packet = datagram;
  std::uint8_t key = 0;  // that an initial packet was sealed with
  if (protection_ != nullptr) [[unlikely]] {
    packet = wire::packet_in(datagram);
    const Verdict verdict = open(datagram, header, key);
    if (verdict != Verdict::kAccepted) return verdict;
  } else if (const Verdict verdict = wire::decode(packet, header); verdict != Verdict::kAccepted) {
    return verdict;
  }
  if (checksum_ != header.has(wire::kFlagChecksum)) return Verdict::kBadChecksum;
  if (checksum_ && !wire::checksum_holds(packet, header)) [[unlikely]]
    return Verdict::kBadChecksum;
  const bool bulk = header.type == wire::PacketType::kBulk;
  const auto body = bulk ? std::span<const std::byte>{} : packet.subspan(wire::kHeaderBytes);
  if (!(bulk ? frames_.read_bulk(packet) : frames_.read(body))) return Verdict::kBadFrame;
  if (header.type == wire::PacketType::kHello) [[unlikely]]
    return handshake_.handle_hello(now, header, key, frames_, body);
  Peer* peer = peers_.find(header.to);
  if (peer == nullptr) [[unlikely]]
    return handle_unknown(now, header, key);
  Rail* rail = &peer->home;
  if (header.rail != 0) [[unlikely]] {
    rail = peer->rail(header.rail);
    if (rail == nullptr) return Verdict::kUnknownConnection;
  }
  switch (header.type) {
    case wire::PacketType::kHello:
      return Verdict::kBadType;  // handled above
    case wire::PacketType::kWelcome:
      return handshake_.handle_welcome(now, *peer, header, key, body);
    case wire::PacketType::kControl:
      return handle_control(now, *rail, header, body);
    case wire::PacketType::kSequenced:
    case wire::PacketType::kBulk:
      return handle_sequenced(now, *rail, header, body);
    case wire::PacketType::kCheck:
      return handle_check(now, *rail, header);
  }
  return Verdict::kBadType;
}

// Decodes a protected packet's header, and opens the packet before anything else of it is believed
// (wire.md 12.6).
Verdict Receiver::open(std::span<const std::byte> datagram, wire::PacketHeader& header,
                       std::uint8_t& key) {
  const auto packet = wire::packet_in(datagram);
  const Verdict verdict = wire::decode(packet, header, protection_->mode());
  if (verdict != Verdict::kAccepted) return verdict;
  if (wire::is_initial(header.type)) [[unlikely]] {
    const auto opened = protection_->open_initial(datagram, protection_->mode());
    key = opened.value_or(0);
    return opened ? Verdict::kAccepted : Verdict::kNotAuthentic;
  }
  Peer* peer = peers_.find(header.to);
  Rail* rail = peer == nullptr ? nullptr : peer->rail(header.rail);
  if (rail == nullptr) return Verdict::kUnknownConnection;
  if (!protection_->open(*rail, header, datagram)) return Verdict::kNotAuthentic;
  return is_replay(*rail, header) ? Verdict::kDuplicate : Verdict::kAccepted;
}

// Returns whether a packet that opens came before, and notes that it came now. Who copies packets
// must not make us take them for a sign of life, nor make us send anything. A copy that the network
// made needs no answer, either: what is sent again has another number.
bool Receiver::is_replay(Rail& rail, const wire::PacketHeader& header) {
  if (header.type == wire::PacketType::kControl) {
    const PacketNumber number = rail.acks_heard.number_of(header.number);
    if (!rail.acks_heard.is_new(number)) return true;
    rail.acks_heard.note(number);
    return false;
  }
  // Before the peer has proved itself, which it may do by this packet, nothing has come.
  if (!rail.peer.introduced || rail.link.judge(header) != Arrival::kDuplicate) return false;
  rail.link.handle_copy(header);
  return true;
}

// Returns whether the peer may send: it has proved itself, or it does so by the proof in this
// packet, which only our WELCOME has told.
bool Receiver::may_speak(const Peer& peer) const {
  if (peer.introduced) [[likely]]
    return true;
  return peer.phase == Phase::kAnswering && peer.said != nullptr && !handshake_.is_superseded(peer);
}

// Handles an ACK alone: its body is empty, or one SACK frame (wire.md 2.2).
Verdict Receiver::handle_control(Instant now, Rail& rail, const wire::PacketHeader& header,
                                 std::span<const std::byte> body) {
  Peer& peer = rail.peer;
  if (!may_speak(peer) || peer.phase == Phase::kGone) return Verdict::kWrongState;
  wire::FrameReader reader(body);
  wire::Frame sack;
  const bool has_sack = reader.next(sack);
  if (has_sack && sack.type != wire::FrameType::kSack) return Verdict::kBadFrame;
  if (wire::Frame more; has_sack && reader.next(more)) return Verdict::kBadFrame;
  const Verdict verdict =
      ack_handler_.handle(now, rail, {header, slot_, has_sack ? &sack : nullptr},
                          {.ago = {}, .unseen = clock_.unpolled()});
  if (verdict != Verdict::kAccepted) return verdict;
  if (peer.said != nullptr) handshake_.handle_proof(now, peer);
  if (peer.rails != nullptr) upkeep_of(rail).heard_at = now;
  credits_.note_heard(now, peer);
  return verdict;
}

Verdict Receiver::handle_sequenced(Instant now, Rail& rail, const wire::PacketHeader& header,
                                   std::span<const std::byte> body) {
  Peer& peer = rail.peer;
  if (!may_speak(peer)) return Verdict::kWrongState;
  if (peer.phase >= Phase::kFarewell) [[unlikely]] {
    if (peer.phase == Phase::kGone) return handle_late(now, rail, header, body);
    if (FrameHandler::brings_news(peer, frames_, body)) return Verdict::kWrongState;
  }
  const bool deferred = ack_handler_.may_defer(rail, header, came_, frames_.is_one_message());
  if (deferred) {
    acks_.defer({&rail, header, now, clock_.unpolled(), slot_});
  } else if (header.has(wire::kFlagAck) && !acks_.repeats_deferred(rail, header)) {
    const Verdict verdict =
        ack_handler_.handle(now, rail, {header, slot_}, {.ago = {}, .unseen = clock_.unpolled()});
    if (verdict != Verdict::kAccepted) return verdict;
    if (peer.phase == Phase::kGone) return handle_late(now, rail, header, body);
  }
  if (peer.said != nullptr) handshake_.handle_proof(now, peer);
  if (peer.memory != nullptr) [[unlikely]]
    memory_.drain(now, peer);
  const Verdict verdict = frame_handler_.handle(now, rail, header, frames_);
  if (verdict == Verdict::kAccepted || verdict == Verdict::kDuplicate) [[likely]] {
    if (peer.rails != nullptr) [[unlikely]]
      upkeep_of(rail).heard_at = now;
    credits_.note_heard(now, peer);
    if (!deferred || rail.link.ack_need() == AckNeed::kNow) acks_.schedule(now, rail);
  }
  return verdict;
}

// Handles a packet of a peer that is gone. After an orderly end the peer may lack our last ACK, or
// its BYE may have crossed ours; anything else is dropped.
Verdict Receiver::handle_late(Instant now, Rail& rail, const wire::PacketHeader& header,
                              std::span<const std::byte> body) {
  const Peer& peer = rail.peer;
  if (peer.why != Status::kPeerClosed && peer.why != Status::kClosed) return Verdict::kWrongState;
  const Arrival arrival = rail.link.judge(header);
  wire::FrameReader reader(body);
  wire::Frame frame;
  const bool bye = reader.next(frame) && frame.type == wire::FrameType::kBye;
  if (arrival == Arrival::kOutside || (arrival == Arrival::kNew && !bye))
    return Verdict::kWrongState;
  if (arrival == Arrival::kNew) {
    rail.link.handle_arrival(now, header);
    rail.link.handle_ping();
  } else {
    rail.link.handle_duplicate(header);
  }
  acks_.schedule(now, rail);
  return Verdict::kDuplicate;
}

// Handles a packet to a connection that is not ours. A CHECK for another engine that was sent to an
// address of ours gets an unknown-peer reply: the engine it is for is not here. One that was
// misrouted, or came back to its sender, is not answered. An unknown-peer reply says that we have
// asked another engine than we meant.
Verdict Receiver::handle_unknown(Instant now, const wire::PacketHeader& header, std::uint8_t key) {
  const wire::Frame* frame = header.type == wire::PacketType::kCheck ? frames_.next() : nullptr;
  if (frame != nullptr && frame->type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(frame->data);
    const bool for_another = check && check->epoch != epoch_ && nics_.is_own_port(check->called);
    if (for_another && !lifecycle_.closing()) {
      replies_.reply_unknown_peer(now, {slot_, key}, header, *check);
    }
  } else if (frame != nullptr && frame->type == wire::FrameType::kChecked) {
    const auto checked = wire::decode_checked(frame->data);
    if (checked && checked->unknown_peer && header.to == wire::ConnectionId{}) {
      return liveness_.handle_unknown_peer_reply(now, header, *checked);
    }
  }
  return Verdict::kUnknownConnection;
}

// Returns whether the datagram with this part came by another NIC than it was sent to, as far as
// the driver knows.
bool Receiver::came_by_another_nic(std::span<const std::byte> part) const {
  for (const nic::Incoming& incoming : batch_) {
    const std::byte* const end = incoming.bytes.data() + incoming.bytes.size();
    if (part.data() < incoming.bytes.data() || part.data() > end) continue;
    return nics_.at(place_).port().by_another_nic(incoming);
  }
  return false;
}

// Handles a packet of one CHECK or CHECKED and nothing else (wire.md 2.2). If it came by another
// NIC than the rail's, it says nothing of the rail.
Verdict Receiver::handle_check(Instant now, Rail& rail, const wire::PacketHeader& header) {
  const wire::Frame* frame = frames_.next();
  if (frame == nullptr) return Verdict::kBadFrame;
  const wire::Frame only = *frame;
  if (frames_.next() != nullptr) return Verdict::kBadFrame;
  if (!rail.peer.introduced || rail.peer.phase == Phase::kGone) return Verdict::kWrongState;
  if (!rail.peer.flows()) return Verdict::kAccepted;  // no answer can leave yet: it asks again
  const bool own_way = came_by(rail, slot_);
  if (only.type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(only.data);
    if (!check || header.length < check_.least_length(rail, check->size)) return Verdict::kBadFrame;
    if (own_way) check_.handle_question(now, rail, *check, came_by_another_nic(only.data));
    return Verdict::kAccepted;
  }
  if (only.type != wire::FrameType::kChecked) return Verdict::kBadFrame;
  const auto checked = wire::decode_checked(only.data);
  if (!checked || checked->unknown_peer ||
      header.length < check_.least_length(rail, checked->size)) {
    return Verdict::kBadFrame;
  }
  if (own_way) check_.handle_answer(rail, *checked, came_by_another_nic(only.data));
  return Verdict::kAccepted;
}

}  // namespace pullman::engine
