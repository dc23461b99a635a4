// The connectivity check's other half: what we answer to a peer that asks (wire.md 9.9), and to
// somebody who asks the wrong one (9.10). Bounded, whoever asks, and however often. Cold.
#include <algorithm>
#include <utility>

#include "engine/check_packet.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using wire::CheckSize;
using wire::RailBits;

namespace {

// What came of a round so far is answered at once; so long after an answer comes the next one.
constexpr Duration kAnswerDelay = std::chrono::microseconds(20);
constexpr Duration kAnswerGap = std::chrono::milliseconds(1);
constexpr std::uint8_t kAnswersPerRound = 16;
// A peer that asks no more is forgotten.
constexpr Duration kAnswersKept = std::chrono::seconds(2);
// Who is asked for another is not asked often.
constexpr Duration kStrangerGap = std::chrono::milliseconds(10);

std::size_t slot_in(std::uint64_t token) {
  return token & ((std::uint64_t{1} << kSlotBits) - 1);
}

}  // namespace

void Engine::Impl::take_question(Instant now, const Rail& rail, const wire::Check& check,
                                 bool elsewhere) {
  Answering& answering = checking_of(rail.peer).answering;
  if (!answering.any || static_cast<std::int16_t>(check.round.count - answering.round.count) > 0) {
    answering.any = true;
    answering.round = check.round;
    answering.arrived = {};
    answering.elsewhere = 0;
    answering.large_owed = 0;
    answering.left = kAnswersPerRound;
  }
  if (check.round != answering.round) return;  // an earlier one
  answering.arrived[index_of(check.size)] |= bit_of(rail);
  if (elsewhere) answering.elsewhere |= bit_of(rail);
  if (check.size == CheckSize::kLargest) answering.large_owed |= bit_of(rail);
  if (answering.due || answering.left == 0) return;
  answering.due = true;
  const Duration gap = answering.answered_at == Instant::min()
                           ? Duration(0)
                           : answering.answered_at + kAnswerGap - now;
  rearm(now, answering.timer, std::max(gap, kAnswerDelay));
}

// Short answers on all rails, of which the peer may hear one that it cannot be heard on; a long one
// for each long question, on the rail it came by. So nobody makes us send much to where he only
// says that he is.
void Engine::Impl::answer_check(Instant now, Peer& peer) {
  Answering& answering = peer.checking->answering;
  if (!std::exchange(answering.due, false)) {
    const Asking& asking = peer.checking->asking;
    const bool doubted = peer.checking->doubt.timer.checked_in();
    if (asking.round.token == 0 && !doubted) peer.checking.reset();
    return;
  }
  answering.answered_at = now;
  --answering.left;
  const RailBits owed = std::exchange(answering.large_owed, RailBits{0});
  if (peer.flows()) {
    peer.for_each_rail([&](const Rail& rail) {
      if (!rail.resolved()) return;
      answer_on(rail, CheckSize::kSmallest);
      if ((owed & bit_of(rail)) != 0) answer_on(rail, CheckSize::kLargest);
    });
  }
  rearm(now, answering.timer, kAnswersKept);
}

void Engine::Impl::answer_on(const Rail& rail, CheckSize size) {
  const Answering& answering = rail.peer.checking->answering;
  const std::size_t bytes = size == CheckSize::kLargest ? rail.link.path().most()
                                                        : wire::kHeaderBytes + wire::kCheckedBytes;
  auto packet = packet_of(bytes, rail.peer.theirs, rail.number);
  wire::put_checked(frame_of(packet), {.round = answering.round,
                                       .size = size,
                                       .arrived = answering.arrived,
                                       .elsewhere = answering.elsewhere});
  send_check(rail, size, packet);
}

// --- strangers

// To a connection that is none of ours. A question for another engine that was sent to an address
// of ours is answered: the one it is for is not there. What was led astray, or back to who asks, is
// not. Whom we asked, and who is not the one, says so.
Verdict Engine::Impl::handle_unknown(Instant now, const wire::PacketHeader& header) {
  const wire::Frame* frame = header.type == wire::PacketType::kCheck ? frames_.next() : nullptr;
  if (frame != nullptr && frame->type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(frame->data);
    if (check && check->epoch != epoch_ && is_own_port(check->called)) {
      send_unknown_peer_reply(now, header, *check);
    }
  } else if (frame != nullptr && frame->type == wire::FrameType::kChecked) {
    const auto checked = wire::decode_checked(frame->data);
    if (checked && checked->stranger && header.to == wire::ConnectionId{}) {
      return take_unknown_peer_reply(now, header, *checked);
    }
  }
  return Verdict::kUnknownConnection;
}

// Nobody has proved anything here: one small answer, no longer than the question was, to the
// address it names, and seldom.
void Engine::Impl::send_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                                           const wire::Check& check) {
  if (closing_ || unknown_peer_reply_ || now < next_unknown_peer_reply_) return;
  next_unknown_peer_reply_ = now + kStrangerGap;
  unknown_peer_reply_ =
      UnknownPeerReply{.module = current_module_, .rail = header.rail, .round = check.round};
  ++resolving_;
  ++resolving_at_[current_module_];
  modules_[current_module_]
      ->channel(ChannelKind::kCommand)
      .port()
      .resolve(check.reply_to, kUnknownPeerCookie);
}

// The address has become a destination, or not.
void Engine::Impl::repeat_unknown_peer_reply(const nic::PortEvent& event) {
  const auto denial = std::exchange(unknown_peer_reply_, std::nullopt);
  if (!denial || event.kind != nic::PortEvent::Kind::kResolved) return;
  auto packet =
      packet_of(wire::kHeaderBytes + wire::kCheckedBytes, wire::ConnectionId{}, denial->rail);
  wire::put_checked(frame_of(packet), {.round = denial->round, .stranger = true});
  if (config_.checksum) wire::seal(packet, {});
  Channel& channel = modules_[denial->module]->channel(ChannelKind::kCommand);
  channel.send_unremembered(packet, event.to);
  channel.port().forget(event.to);
}

Verdict Engine::Impl::take_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                                              const wire::Checked& checked) {
  const std::size_t slot = slot_in(checked.round.token);
  Peer* peer = slot < peers_.slots() ? peers_.at(static_cast<std::uint32_t>(slot)) : nullptr;
  if (peer == nullptr || peer->checking == nullptr) return Verdict::kUnknownConnection;
  Asking& asking = peer->checking->asking;
  const Rail* rail = peer->rail(header.rail);
  const bool asked = asking.running || peer->checking->doubt.asked;
  if (!asked || asking.round != checked.round || rail == nullptr) {
    return Verdict::kUnknownConnection;
  }
  if (asking.running) {
    asking.wrong |= bit_of(*rail);
  } else {
    note_unknown_peer_reply(now, *rail);
  }
  return Verdict::kAccepted;
}

}  // namespace pullman::engine
