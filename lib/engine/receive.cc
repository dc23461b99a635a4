// From a datagram to its frames. A datagram is judged in full before any of it is acted on.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using reliability::AckNeed;
using reliability::Arrival;

std::size_t Engine::Impl::receive_all(Instant now) {
  if (const auto tick = static_cast<std::uint64_t>(now.time_since_epoch() / kTick); tick != tick_) {
    heard_last_tick_ = tick == tick_ + 1 ? heard_this_tick_ : 0;
    heard_this_tick_ = 0;
    tick_ = tick;
    share_credit();
  }
  resting_until_ = Instant::max();
  pause_.begin_turn(now, inbox_counters_, kept_ != 0);
  std::size_t received = 0;
  // Command channels come first in the row.
  for (std::uint32_t bits = to_ask(now); bits != 0; bits &= bits - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(bits));
    Channel& channel = *row_[place];
    if (const auto batch = channel.receive(); !batch.empty()) [[likely]] {
      received += take_batch(now, place, batch);
    } else if (channel.quiet() && (active_channels_ & channel.mark()) != 0) {
      active_channels_ &= ~channel.mark();
      quiet_since_ = now;
    }
  }
  last_received_ = received;
  return received;
}

// Some are quiet, and it is time to ask them: those of a NIC that is not quiet altogether, and of
// the others once in a longer while. Not yet if packets come, or many leave.
std::uint32_t Engine::Impl::look_at_quiet_ones(Instant now) {
  if (now < sends_much_until_ && now < quiet_asked_ + kSendingRest) return active_channels_;
  if (last_received_ != 0 && now < quiet_asked_ + kBusyRest) return active_channels_;
  quiet_asked_ = now;
  quiet_due_ = now + std::clamp((now - quiet_since_) / kRestOfSilence, kRest, kBusyRest);
  constexpr std::uint32_t kCommands = (1 << kRow) - 1;
  const std::uint32_t nics = (active_channels_ | active_channels_ >> kRow) & kCommands;
  const std::uint32_t asked = active_channels_ | (all_ & (nics | nics << kRow));
  const std::uint32_t attended = asked | attended_;
  if (asked == attended || now < idle_due_) return asked;
  idle_due_ = now + kBusyRest;
  if (streams_ == 0) return attended;
  if (now < stream_due_) return asked | (attended & ~streams_);
  stream_due_ = now + kStreamRest;
  return attended;
}

std::uint32_t Engine::Impl::look_at_all(Instant now) {
  unattended_due_ = now + kUnattendedRest;
  return all_;
}

// Returns how many packets of it: the rest is for the next turn if the program is to post first.
std::size_t Engine::Impl::take_batch(Instant now, std::size_t place,
                                     std::span<const nic::Incoming> batch) {
  Channel& channel = *row_[place];
  const std::uint64_t unexpected = inbox_counters_.unexpected;
  active_channels_ |= std::uint32_t{1} << place;
  current_module_ = place % kRow;
  channel_in_hand_ = &channel;
  current_batch_ = batch;
  came_ = batch.size() == 1 ? Came::kAlone : Came::kTogether;
  if ((kept_ & channel.mark()) != 0) [[unlikely]]
    came_ = Came::kBehindKept;
  const std::uint64_t received = inbox_counters_.messages;
  auto rest = batch;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    if (inbox_counters_.unexpected != unexpected && pause_.due(inbox_counters_)) [[unlikely]]
      break;
    wire::PacketHeader header;
    const Verdict verdict = handle_datagram(now, rest.front().bytes, header);
    if (verdict == Verdict::kAccepted) [[likely]] {
      ++stats_.packets_received;
      if (rest.size() > 1) rest = rest.subspan(take_run(now, header, rest));
    } else if (verdict == Verdict::kDuplicate) {
      ++stats_.duplicate_packets;
    } else {
      ++stats_.dropped_packets;
      ++stats_.dropped_by_reason[static_cast<std::size_t>(verdict)];
    }
  }
  if (came_ == Came::kTogether && inbox_counters_.messages == received) handle_deferred_ack(now);
  kept_ = rest.empty() ? kept_ & ~channel.mark() : kept_ | channel.mark();
  channel.keep(rest.size());
  current_batch_ = {};
  const std::size_t taken = batch.size() - rest.size();
  channel.give_back(batch.first(taken));
  return taken;
}

// wire.md 1.3: the order of the checks. The header is the caller's place for it.
Verdict Engine::Impl::handle_datagram(Instant now, std::span<const std::byte> datagram,
                                      wire::PacketHeader& header) {
  if (const Verdict verdict = wire::decode(datagram, header); verdict != Verdict::kAccepted) {
    return verdict;
  }
  if (config_.checksum != header.has(wire::kFlagChecksum)) return Verdict::kBadChecksum;
  if (config_.checksum && !wire::checksum_holds(datagram, header)) [[unlikely]]
    return Verdict::kBadChecksum;
  const bool bulk = header.type == wire::PacketType::kBulk;
  const auto body = bulk ? std::span<const std::byte>{} : datagram.subspan(wire::kHeaderBytes);
  if (!(bulk ? frames_.read_bulk(datagram) : frames_.read(body))) return Verdict::kBadFrame;
  if (header.type == wire::PacketType::kHello) [[unlikely]]
    return handle_hello(now, header, body);
  Peer* peer = peers_.find(header.to);
  if (peer == nullptr) [[unlikely]]
    return handle_unknown(now, header);
  Rail* rail = &peer->home;
  if (header.rail != 0) [[unlikely]] {
    rail = peer->rail(header.rail);
    if (rail == nullptr) return Verdict::kUnknownConnection;
  }
  switch (header.type) {
    case wire::PacketType::kHello:
      return Verdict::kBadType;  // handled above
    case wire::PacketType::kWelcome:
      return handle_welcome(now, *peer, header, body);
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

// It has proved itself, or it knows what only our WELCOME has told.
bool Engine::Impl::may_speak(const Peer& peer) const {
  if (peer.introduced) [[likely]]
    return true;
  return peer.phase == Phase::kAnswering && peer.said != nullptr && !is_superseded(peer);
}

// An ACK alone: nothing, or one SACK frame (wire.md 2.2).
Verdict Engine::Impl::handle_control(Instant now, Rail& rail, const wire::PacketHeader& header,
                                     std::span<const std::byte> body) {
  Peer& peer = rail.peer;
  if (!may_speak(peer) || peer.phase == Phase::kGone) return Verdict::kWrongState;
  wire::FrameReader reader(body);
  wire::Frame sack;
  const bool has_sack = reader.next(sack);
  if (has_sack && sack.type != wire::FrameType::kSack) return Verdict::kBadFrame;
  if (wire::Frame more; has_sack && reader.next(more)) return Verdict::kBadFrame;
  const Verdict verdict =
      handle_ack(now, rail, header, has_sack ? &sack : nullptr, {.ago = {}, .unseen = unpolled_});
  if (verdict != Verdict::kAccepted) return verdict;
  if (peer.said != nullptr) handle_proof(now, peer);
  if (peer.rails != nullptr) upkeep_of(rail).heard_at = now;
  note_heard(now, peer);
  return verdict;
}

Verdict Engine::Impl::handle_sequenced(Instant now, Rail& rail, const wire::PacketHeader& header,
                                       std::span<const std::byte> body) {
  Peer& peer = rail.peer;
  if (!may_speak(peer)) return Verdict::kWrongState;
  if (peer.phase >= Phase::kFarewell) [[unlikely]] {
    if (peer.phase == Phase::kGone) return handle_late(now, rail, header, body);
    if (brings_news(peer, body)) return Verdict::kWrongState;
  }
  const bool later = may_wait(rail, header);
  if (later) {
    deferred_ack_ = {&rail, header, now, unpolled_, current_module_};
  } else if (header.has(wire::kFlagAck) && !repeats_deferred_ack(rail, header)) {
    const Verdict verdict =
        handle_ack(now, rail, header, nullptr, {.ago = {}, .unseen = unpolled_});
    if (verdict != Verdict::kAccepted) return verdict;
    if (peer.phase == Phase::kGone) return handle_late(now, rail, header, body);
  }
  if (peer.said != nullptr) handle_proof(now, peer);
  const Verdict verdict = handle_frames(now, rail, header);
  if (verdict == Verdict::kAccepted || verdict == Verdict::kDuplicate) [[likely]] {
    if (peer.rails != nullptr) [[unlikely]]
      upkeep_of(rail).heard_at = now;
    note_heard(now, peer);
    if (!later || rail.link.ack_need() == AckNeed::kNow) schedule_ack(now, rail);
  }
  return verdict;
}

// Something of a message that had not arrived when our BYE was written: it says so, and shall be
// true.
bool Engine::Impl::brings_news(const Peer& peer, std::span<const std::byte> body) const {
  if (body.empty()) return peer.inbox.is_news(frames_.front());  // a bulk packet
  wire::FrameReader reader(body);
  for (wire::Frame frame; reader.next(frame);) {
    const bool of_message = frame.type == wire::FrameType::kMessage ||
                            frame.type == wire::FrameType::kChunk ||
                            frame.type == wire::FrameType::kEnvelope;
    if (of_message && peer.inbox.is_news(frame)) return true;
  }
  return false;
}

// A packet of a peer that is gone. After an orderly end it may lack our last ACK, or be its own BYE
// that crossed ours; anything else has nobody to go to.
Verdict Engine::Impl::handle_late(Instant now, Rail& rail, const wire::PacketHeader& header,
                                  std::span<const std::byte> body) {
  const Peer& peer = rail.peer;
  if (peer.why != Status::kPeerClosed && peer.why != Status::kClosed) return Verdict::kWrongState;
  const Arrival arrival = rail.link.judge(header);
  wire::FrameReader reader(body);
  wire::Frame frame;
  const bool bye = reader.next(frame) && frame.type == wire::FrameType::kBye;
  if (arrival == Arrival::kNew && bye) rail.link.handle_arrival(now, header);
  if (arrival == Arrival::kOutside || (arrival == Arrival::kNew && !bye))
    return Verdict::kWrongState;
  rail.link.handle_redundant();
  schedule_ack(now, rail);
  return Verdict::kDuplicate;
}

// Acts on the frames of the sequenced packet in hand. All of them are idempotent, so a packet of
// which one is refused is simply not noted: it will be sent again.
Verdict Engine::Impl::handle_frames(Instant now, Rail& rail, const wire::PacketHeader& header) {
  Peer& peer = rail.peer;
  if (const Arrival arrival = rail.link.judge(header); arrival != Arrival::kNew) [[unlikely]] {
    if (arrival == Arrival::kOutside) return Verdict::kOutsideWindow;
    rail.link.handle_duplicate(header);
    return Verdict::kDuplicate;
  }
  Effect effect;
  if (frames_.is_one_message()) [[likely]] {
    effect = act_on_message(peer);
  } else {
    effect = act_on(peer, frames_);
  }
  if (effect.refused) [[unlikely]]
    return Verdict::kOverLimit;
  rail.link.handle_arrival(now, header, poll_gap_);
  if (effect.redundant) [[unlikely]]
    rail.link.handle_redundant();
  if (effect.urgent) [[unlikely]]
    rail.link.handle_ping();
  look_after_frames(now, peer);
  if (effect.bye) [[unlikely]]
    handle_bye(peer);
  return Verdict::kAccepted;
}

// Frames were acted on: the peer may have to be told something, or owe us more.
void Engine::Impl::look_after_frames(Instant now, Peer& peer) {
  if (peer.inbox.has_frames() || peer.outbox.has_packets() || peer.phase == Phase::kClosing ||
      may_announce(peer)) [[unlikely]] {
    mark_ready(peer);
  }
  if (peer.inbox.expects_more() && !peer.alarm.checked_in()) [[unlikely]]
    arm(now, peer);
}

// The common case.
Engine::Impl::Effect Engine::Impl::act_on_message(Peer& peer) {
  const message::Taken taken = peer.inbox.handle_message(frames_.front());
  return {.refused = taken == message::Taken::kRefused,
          .redundant = taken == message::Taken::kRedundant};
}

Engine::Impl::Effect Engine::Impl::act_on(Peer& peer, wire::FrameList& frames) {
  using message::Taken;
  Effect effect;
  bool useful = false;
  while (const wire::Frame* next = frames.next()) {
    const wire::Frame& frame = *next;
    Taken taken = Taken::kNew;
    switch (frame.type) {
      case wire::FrameType::kMessage:
        taken = peer.inbox.handle_message(frame);
        break;
      case wire::FrameType::kChunk:
        taken = peer.inbox.handle_chunk(frame);
        break;
      case wire::FrameType::kEnvelope:
        taken = peer.inbox.handle_envelope(frame);
        break;
      case wire::FrameType::kGrant:
        if (!peer.outbox.handle_grant(frame.id, frame.limit)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kResult:
        if (!handle_result(peer, frame)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kAllowance:
        peer.outbox.handle_allowance(frame.limit, frame.total);
        break;
      case wire::FrameType::kBlocked:
        if (!handle_blocked(polled_until_, peer, frame.limit)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kPing:
        effect.urgent = true;
        break;
      case wire::FrameType::kBye:
        if (!peer.outbox.may_say(frame)) taken = Taken::kRefused;
        bye_ = frame;
        effect.urgent = effect.bye = true;
        break;
      case wire::FrameType::kHello:
        break;  // read before
      case wire::FrameType::kPadding:
        continue;  // it is of no use, whatever is
      case wire::FrameType::kWays:
        handle_ways(peer, frame);
        break;
      case wire::FrameType::kRail:
        handle_rail_report(peer, frame);
        break;
      case wire::FrameType::kNics:
        if (!handle_nics(peer, frame)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kSack:
      case wire::FrameType::kCheck:
      case wire::FrameType::kChecked:
        taken = Taken::kRefused;
        break;  // wire.md 4.7, 9.8
    }
    if (taken == Taken::kRefused) return {.refused = true};
    (taken == Taken::kRedundant ? effect.redundant : useful) = true;
  }
  effect.redundant = effect.redundant && !useful;
  return effect;
}

// What became of a message of ours, or of what we asked for (wire.md 10.2). False: it contradicts
// what was sent.
bool Engine::Impl::handle_result(Peer& peer, const wire::Frame& frame) {
  using Found = message::Outbox::Found;
  const auto id = peer.outbox.id_of(frame.id);
  if (!id) return false;
  const bool refused = frame.limit == static_cast<std::uint64_t>(wire::Result::kRefusedAccess);
  const Status status = refused ? Status::kRefusedAccess : Status::kOk;
  if (peer.one_sided.handle_result(*id, status)) return true;
  return peer.outbox.handle_result(*id, status) != Found::kRefused;
}

// Whether the ACK of a packet, and its own, may wait until the program has had its turn with the
// message it came with: a good part of what receiving costs, nobody waits for the one, and the
// other rides on the answer if there is one. Of a message of several packets that is so where
// nothing waits to be sent; take_batch() sees whether one of them was the message's last.
bool Engine::Impl::may_wait(const Rail& rail, const wire::PacketHeader& header) const {
  const Peer& peer = rail.peer;
  if (deferred_ack_.rail != nullptr) [[unlikely]]
    return false;
  if (came_ != Came::kAlone || !frames_.is_one_message()) [[unlikely]] {
    const bool together = came_ == Came::kTogether;
    if (!together || !rail.link.acks_all(header) || peer.ready.is_linked()) return false;
  }
  return header.has(wire::kFlagAck) && peer.phase == Phase::kConnected && peer.said == nullptr &&
         !rail.link.repeats_ack(header) && rail.link.believes(header);
}

// It says what the one that waits says.
bool Engine::Impl::repeats_deferred_ack(const Rail& rail, const wire::PacketHeader& header) const {
  const wire::PacketHeader& late = deferred_ack_.header;
  return deferred_ack_.rail == &rail && header.cumulative == late.cumulative &&
         header.credit == late.credit && header.late == late.late;
}

void Engine::Impl::take_deferred_ack(Instant now) {
  Rail& rail = *deferred_ack_.rail;
  deferred_ack_.rail = nullptr;
  current_module_ = deferred_ack_.module;
  handle_ack(now, rail, deferred_ack_.header, nullptr,
             {.ago = now - deferred_ack_.came_at, .unseen = deferred_ack_.unseen});
  schedule_ack(now, rail);
}

Verdict Engine::Impl::handle_ack(Instant now, Rail& rail, const wire::PacketHeader& header,
                                 const wire::Frame* sack, reliability::AckTiming timing) {
  // Half of a stream's acks: they ride on packets that leave between two that arrive.
  const bool news = sack != nullptr || rail.peer.phase != Phase::kConnected;
  if (!news && rail.link.repeats_ack(header)) return Verdict::kAccepted;
  const Verdict verdict = rail.link.handle_ack(now, header, sack, timing);
  if (verdict != Verdict::kAccepted) return verdict;
  collect(now, rail);
  if (rail.peer.rails != nullptr) handle_rail_answer(now, rail, came_by(rail));
  if (rail.link.rtt().sampled()) {
    rtt_ns_ = static_cast<std::uint64_t>(rail.link.rtt().smoothed().count());
  }
  return verdict;
}

// Releases what the last ack delivered; what it proved lost, or made room for, makes the peer
// ready.
void Engine::Impl::collect(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  bool bye_acked = false;
  Instant asked = Instant::min();  // the youngest of the PINGs that were answered
  if (!rail.link.acked().empty()) peer.outbox.note_ack();
  for (auto& acked = rail.link.acked(); !acked.empty();) {
    Packet& packet = acked.front();
    acked.pop_front();
    if (!packet.is_probe) {
      peer.news_at = now;
    } else if (!packet.is_path_probe) {
      asked = std::max(asked, packet.sent_at);
    } else {
      rail.link.path().handle_probe_acked(now, packet.size());
    }
    if (packet.rest != 0) [[unlikely]] {
      resume(rail, packet);
      continue;
    }
    if (&packet == peer.hello) peer.hello = nullptr;
    peer.outbox.handle_acked(packet);
    release(rail, packet);
    bye_acked = peer.phase == Phase::kFarewell && !peer.bye_due && nothing_to_deliver(peer);
  }
  if (asked != Instant::min()) rail.link.handle_probe_acked(now, asked);
  if (rail.link.path().has_news()) [[unlikely]]
    settle_path(now, rail);
  update_loss_timer(now, rail);
  if (bye_acked) return end_peer(peer, Status::kClosed);
  if (peer.phase == Phase::kClosing) begin_leaving(now, peer);
  if (has_work(peer)) mark_ready(peer);
}

void Engine::Impl::note_heard(Instant now, Peer& peer) {
  peer.heard_at = now;
  const auto tick = static_cast<std::uint32_t>(tick_);
  if (peer.heard_tick == tick) [[likely]]
    return;
  peer.heard_tick = tick;
  ++heard_this_tick_;
  share_credit();
}

void Engine::Impl::schedule_ack(Instant now, Rail& rail) {
  const AckNeed need = rail.link.ack_need();
  if (need >= AckNeed::kEnough) {
    if (!rail.ack.is_linked()) ack_now_.push_back(rail);
  } else if (need == AckNeed::kDelayed && !rail.ack_timer.checked_in()) {
    ack_timers_.check_in(now, rail.ack_timer);
  }
}

// What the NIC can hold, shared among the peers heard lately (wire.md 2.6). Told in every
// packet, and reckoned when the number of those peers changes.
void Engine::Impl::share_credit() {
  const std::uint32_t active = std::max({heard_this_tick_, heard_last_tick_, 1u});
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const std::size_t share = modules_[i]->receive_packets() / active;
    credits_[i] = static_cast<std::uint16_t>(std::clamp<std::size_t>(share, 1, wire::kMaxCredit));
  }
}

}  // namespace pullman::engine
