// The connectivity check (wire.md 9.8): which packets get through, over every rail, both ways, the
// smallest and the largest. Beside everything else: its packets have no numbers, wait for nobody
// and prove nothing to the links. Cold.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/engine_impl.h"
#include "wire/check.h"

namespace pullman::engine {

using wire::CheckSize;
using wire::RailBits;

namespace {

// A question is sent so often, with pauses that double, before it counts as lost.
constexpr std::uint8_t kTries = 4;
// The first of them, as a part of the time there is.
constexpr int kFirstPause = 16;
constexpr Duration kMostTime = std::chrono::hours(1);
// Of rails that are new, which come one after the other and are checked together.
constexpr Duration kNewRailsTime = std::chrono::seconds(1);
constexpr Duration kGathering = std::chrono::milliseconds(1);
// What came of a round so far is answered at once; so long after an answer comes the next one.
constexpr Duration kAnswerDelay = std::chrono::microseconds(20);
constexpr Duration kAnswerGap = std::chrono::milliseconds(1);
constexpr std::uint8_t kAnswersPerRound = 16;
// A peer that asks no more is forgotten.
constexpr Duration kAnswersKept = std::chrono::seconds(2);
// Who is asked for another is not asked often.
constexpr Duration kStrangerGap = std::chrono::milliseconds(10);

constexpr std::array kSizes{CheckSize::kSmallest, CheckSize::kLargest};
std::size_t index_of(CheckSize size) {
  return static_cast<std::size_t>(size);
}
RailBits bit_of(const Rail& rail) {
  return static_cast<RailBits>(1u << rail.number);
}

// What calls itself the largest has to be: so long an answer has had so long a question, and what
// it shows is true.
std::size_t least_length(const Rail& rail, CheckSize size) {
  return size == CheckSize::kLargest ? rail.link.path().most() : 0;
}

std::size_t slot_in(std::uint64_t token) {
  return token & 0xFFFFFFFF;
}

bool is_complete(const Asking& asking, RailBits rails) {
  const RailBits all = asking.there[0] & asking.there[1] & asking.back[0] & asking.back[1];
  return (rails & ~all) == 0;
}

RailFinding finding_of(const Asking& asking, RailBits rail) {
  const auto has = [rail](RailBits bits) { return (bits & rail) != 0; };
  if (has(asking.wrong)) return RailFinding::kWrongHost;
  const bool there = has(asking.there[0]);
  const bool back = has(asking.back[0]);
  if (!there && !back) return RailFinding::kUnreachable;
  if (!back) return RailFinding::kOneWayThere;
  if (!there) return RailFinding::kOneWayBack;
  const bool large = has(asking.there[1]) && has(asking.back[1]);
  return large ? RailFinding::kFine : RailFinding::kLargeLost;
}

// A CHECK or CHECKED in a packet of its own; the frame is still to be written, behind the header.
std::vector<std::byte> packet_of(std::size_t bytes, wire::ConnectionId to, std::uint8_t rail) {
  std::vector<std::byte> packet(bytes);
  wire::PacketHeader header;
  header.type = wire::PacketType::kCheck;
  header.rail = rail;
  header.length = static_cast<std::uint16_t>(bytes);
  header.to = to;
  wire::encode(header, packet.data());
  return packet;
}
std::span<std::byte> frame_of(std::vector<std::byte>& packet) {
  return std::span(packet).subspan(wire::kHeaderBytes);
}

}  // namespace

// --- asking

Status Engine::Impl::begin_check(Instant now, PeerId id, Duration limit) {
  if (closing_) return Status::kClosed;
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return Status::kUnknownPeer;
  if (limit <= Duration(0) || limit > kMostTime) return Status::kInvalidArgument;
  if (peer->phase >= Phase::kClosing) {
    return peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
  }
  start_asking(now, *peer, limit, Duration(0));
  return Status::kOk;
}

// Rails come up one by one. Who is being checked for another reason is asked about the new one,
// too, within the time that there was.
void Engine::Impl::check_new_rail(Instant now, Peer& peer) {
  if (peer.checking == nullptr || !peer.checking->asking.running) {
    return start_asking(now, peer, kNewRailsTime, kGathering);
  }
  Asking& asking = peer.checking->asking;
  asking.tries = 0;
  asking.pause = asking.limit / kFirstPause;
  arm_asking(now, asking, now + std::min(kGathering, asking.pause));
}

void Engine::Impl::start_asking(Instant now, Peer& peer, Duration limit, Duration delay) {
  Asking& asking = checking_of(peer).asking;
  asking.running = true;
  asking.tries = 0;
  ++asking.round.count;
  // Whoever shows it has seen our question; the slot is how we find the peer.
  asking.round.token = random_.next() << 32 | peer.id.index;
  asking.limit = limit;
  asking.pause = limit / kFirstPause;
  // The hotel rounds up by a quarter at most.
  asking.end = now + limit / 5 * 4;
  asking.there = asking.back = {};
  asking.wrong = 0;
  arm_asking(now, asking, now + delay);
}

Checking& Engine::Impl::checking_of(Peer& peer) {
  if (peer.checking == nullptr) {
    peer.checking = std::make_unique<Checking>();
    for (Timer* timer : {&peer.checking->asking.timer, &peer.checking->answering.timer}) {
      timer->peer = peer.id.index;
      timer->of_check = 1;
    }
  }
  return *peer.checking;
}

void Engine::Impl::arm_asking(Instant now, Asking& asking, Instant due) {
  rearm(now, asking.timer, std::min(due, asking.end) - now);
}

void Engine::Impl::rearm(Instant now, Timer& timer, Duration stay) {
  if (timer.checked_in()) alarms_.check_out(timer);
  alarms_.check_in(now, std::max(stay, Duration(1)), timer);
}

void Engine::Impl::handle_check_due(Instant now, Peer& peer, const Timer& timer) {
  if (&timer == &peer.checking->answering.timer) return answer_check(now, peer);
  Asking& asking = peer.checking->asking;
  if (now >= asking.end) return end_asking(peer);
  const bool ready = peer.flows() && (peer.rails == nullptr || peer.rails->paired);
  if (!ready) return arm_asking(now, asking, now + asking.pause);
  ask(peer);
  const bool last = ++asking.tries >= kTries;
  arm_asking(now, asking, last ? asking.end : now + asking.pause);
  asking.pause *= 2;
}

// What has not been answered yet.
void Engine::Impl::ask(Peer& peer) {
  const Asking& asking = peer.checking->asking;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved()) return;
    for (const CheckSize size : kSizes) {
      const std::size_t s = index_of(size);
      if ((asking.there[s] & asking.back[s] & bit_of(rail)) != 0) continue;
      const wire::Check check{.round = asking.round,
                              .size = size,
                              .epoch = peer.epoch,
                              .reply_to = command(rail).port().address()};
      auto packet = packet_of(check_bytes(rail, size), peer.theirs, rail.number);
      wire::put_check(frame_of(packet), check);
      send_check(rail, size, packet);
    }
  });
}

// Of a question.
std::size_t Engine::Impl::check_bytes(const Rail& rail, CheckSize size) {
  if (size == CheckSize::kLargest) return rail.link.path().most();
  return wire::kHeaderBytes + wire::least_check_bytes(command(rail).port().address());
}

// Unremembered, like an ACK: if the NIC has no room it counts as lost.
void Engine::Impl::send_check(const Rail& rail, CheckSize size, std::span<std::byte> packet) {
  if (config_.checksum) wire::seal(packet, {});
  const bool large = size == CheckSize::kLargest;
  Channel& channel = large ? data(rail) : command(rail);
  channel.send_unremembered(packet, large ? rail.data_to : rail.command_to);
}

// What stands by now is the result.
void Engine::Impl::end_asking(Peer& peer) {
  Asking& asking = peer.checking->asking;
  if (asking.timer.checked_in()) alarms_.check_out(asking.timer);
  asking.running = false;
  asking.ended = true;
  asking.found = {};
  peer.for_each_rail([&](const Rail& rail) {
    const RailFinding found = finding_of(asking, bit_of(rail));
    asking.found[rail.number] = found;
    if (found == RailFinding::kFine) return;
    log().info("rail {} by {}: {}", rail.number, module_of(rail).device().name, to_sentence(found));
  });
}

// The peer has ended, too.
void Engine::Impl::end_checking(Peer& peer) {
  if (peer.checking == nullptr) return;
  if (peer.checking->asking.running) end_asking(peer);
  Timer& answers = peer.checking->answering.timer;
  if (answers.checked_in()) alarms_.check_out(answers);
}

RailFinding Engine::Impl::found(const Rail& rail) {
  const auto& checking = rail.peer.checking;
  return checking == nullptr ? RailFinding::kNotChecked : checking->asking.found[rail.number];
}

std::optional<std::vector<RailCheck>> Engine::Impl::check_result(PeerId id) const {
  const Peer* peer = peers_.find(id);
  if (peer == nullptr || peer->checking == nullptr) return std::nullopt;
  const Asking& asking = peer->checking->asking;
  if (asking.running || !asking.ended) return std::nullopt;
  std::vector<RailCheck> rows;
  peer->for_each_rail([&](const Rail& rail) {
    const RailBits bit = bit_of(rail);
    const auto passed = [&](CheckSize size) {
      const std::size_t s = index_of(size);
      return RailCheck::Passed{.bytes = check_bytes(rail, size),
                               .there = (asking.there[s] & bit) != 0,
                               .back = (asking.back[s] & bit) != 0};
    };
    const RailView view = this->view(watched_until_, rail);
    rows.push_back({.number = rail.number,
                    .nic = view.nic,
                    .local = view.local,
                    .remote = view.remote,
                    .finding = asking.found[rail.number],
                    .smallest = passed(CheckSize::kSmallest),
                    .largest = passed(CheckSize::kLargest)});
  });
  return rows;
}

// --- what comes

// One CHECK or CHECKED, and nothing else (wire.md 2.2). By another NIC than the rail's it says
// nothing of the rail.
Verdict Engine::Impl::handle_check(Instant now, Rail& rail, const wire::PacketHeader& header) {
  const wire::Frame* frame = frames_.next();
  if (frame == nullptr) return Verdict::kBadFrame;
  const wire::Frame only = *frame;
  if (frames_.next() != nullptr) return Verdict::kBadFrame;
  if (!rail.peer.introduced || !rail.peer.flows()) return Verdict::kWrongState;
  const bool own_way = rail.module == module_in_hand_;
  if (only.type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(only.data);
    if (!check || header.length < least_length(rail, check->size)) return Verdict::kBadFrame;
    if (own_way) take_question(now, rail, *check);
    return Verdict::kAccepted;
  }
  if (only.type != wire::FrameType::kChecked) return Verdict::kBadFrame;
  const auto checked = wire::decode_checked(only.data);
  if (!checked || checked->stranger || header.length < least_length(rail, checked->size)) {
    return Verdict::kBadFrame;
  }
  if (own_way) take_answer(rail, *checked);
  return Verdict::kAccepted;
}

void Engine::Impl::take_answer(const Rail& rail, const wire::Checked& checked) {
  Peer& peer = rail.peer;
  if (peer.checking == nullptr) return;
  Asking& asking = peer.checking->asking;
  if (!asking.running || checked.round != asking.round) return;
  asking.back[index_of(checked.size)] |= bit_of(rail);
  for (std::size_t s = 0; s < wire::kCheckSizes; ++s) asking.there[s] |= checked.arrived[s];
  RailBits rails = 0;
  peer.for_each_rail([&](const Rail& one) { rails |= bit_of(one); });
  if (is_complete(asking, rails)) end_asking(peer);
}

// --- answering

void Engine::Impl::take_question(Instant now, const Rail& rail, const wire::Check& check) {
  Answering& answering = checking_of(rail.peer).answering;
  if (!answering.any || static_cast<std::int16_t>(check.round.count - answering.round.count) > 0) {
    answering.any = true;
    answering.round = check.round;
    answering.arrived = {};
    answering.large_owed = 0;
    answering.left = kAnswersPerRound;
  }
  if (check.round != answering.round) return;  // an earlier one
  answering.arrived[index_of(check.size)] |= bit_of(rail);
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
    if (!asking.running && !asking.ended) peer.checking.reset();
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
  wire::put_checked(frame_of(packet),
                    {.round = answering.round, .size = size, .arrived = answering.arrived});
  send_check(rail, size, packet);
}

// --- strangers

// To a connection that is none of ours. A question for another engine is answered: it is for want
// of the right address that it came here. Whom we asked, and who is not the one, says so.
Verdict Engine::Impl::handle_unknown(Instant now, const wire::PacketHeader& header) {
  const wire::Frame* frame = header.type == wire::PacketType::kCheck ? frames_.next() : nullptr;
  if (frame != nullptr && frame->type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(frame->data);
    if (check && check->epoch != epoch_) disown(now, header, *check);
  } else if (frame != nullptr && frame->type == wire::FrameType::kChecked) {
    const auto checked = wire::decode_checked(frame->data);
    if (checked && checked->stranger && header.to == wire::ConnectionId{}) {
      return take_denial(header, *checked);
    }
  }
  return Verdict::kUnknownConnection;
}

// Nobody has proved anything here: one small answer, no longer than the question was, to the
// address it names, and seldom.
void Engine::Impl::disown(Instant now, const wire::PacketHeader& header, const wire::Check& check) {
  if (closing_ || denial_ || now < next_denial_) return;
  next_denial_ = now + kStrangerGap;
  denial_ = Denial{.module = module_in_hand_, .rail = header.rail, .round = check.round};
  ++resolving_;
  modules_[module_in_hand_]
      ->channel(ChannelKind::kCommand)
      .port()
      .resolve(check.reply_to, kDenialCookie);
}

// The address has become a destination, or not.
void Engine::Impl::send_denial(const nic::PortEvent& event) {
  const auto denial = std::exchange(denial_, std::nullopt);
  if (!denial || event.kind != nic::PortEvent::Kind::kResolved) return;
  auto packet =
      packet_of(wire::kHeaderBytes + wire::kCheckedBytes, wire::ConnectionId{}, denial->rail);
  wire::put_checked(frame_of(packet), {.round = denial->round, .stranger = true});
  if (config_.checksum) wire::seal(packet, {});
  Channel& channel = modules_[denial->module]->channel(ChannelKind::kCommand);
  channel.send_unremembered(packet, event.to);
  channel.port().forget(event.to);
}

Verdict Engine::Impl::take_denial(const wire::PacketHeader& header, const wire::Checked& checked) {
  const std::size_t slot = slot_in(checked.round.token);
  Peer* peer = slot < peers_.slots() ? peers_.at(static_cast<std::uint32_t>(slot)) : nullptr;
  if (peer == nullptr || peer->checking == nullptr) return Verdict::kUnknownConnection;
  Asking& asking = peer->checking->asking;
  const Rail* rail = peer->rail(header.rail);
  const bool asked = asking.running && asking.round == checked.round && rail != nullptr;
  if (!asked) return Verdict::kUnknownConnection;
  asking.wrong |= bit_of(*rail);
  return Verdict::kAccepted;
}

}  // namespace pullman::engine
