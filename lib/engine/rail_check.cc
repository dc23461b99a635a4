// The connectivity check (wire.md 9.8): which packets get through, over every rail, both ways, the
// smallest and the largest. Beside everything else: its packets have no numbers, wait for nobody
// and prove nothing to the links. Here: what we ask, and what we make of the answers. Cold.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/check_packet.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using wire::CheckSize;
using wire::RailBits;

namespace {

// A question is sent so often, with pauses that double, before it counts as lost.
constexpr std::uint8_t kTries = 4;
// The first of them, as a part of the time there is.
constexpr int kFirstPause = 16;
constexpr Duration kMaxTime = std::chrono::hours(1);
// Of rails that are new, which come one after the other and are checked together.
constexpr Duration kNewRailsTime = std::chrono::seconds(1);
constexpr Duration kGathering = std::chrono::milliseconds(1);

constexpr std::array kSizes{CheckSize::kSmallest, CheckSize::kLargest};

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
  if (!has(asking.there[1]) || !has(asking.back[1])) return RailFinding::kLargeLost;
  if (has(asking.elsewhere_there)) return RailFinding::kOtherNicThere;
  return has(asking.elsewhere_here) ? RailFinding::kOtherNicHere : RailFinding::kFine;
}

}  // namespace

// --- asking

Status Engine::Impl::begin_check(Instant now, PeerId id, Duration limit) {
  if (closing_) return Status::kClosed;
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return Status::kUnknownPeer;
  if (limit <= Duration(0) || limit > kMaxTime) return Status::kInvalidArgument;
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
  asking.round = next_round(peer);
  asking.running = true;
  peer.checking->doubt.asked = false;
  asking.tries = 0;
  asking.limit = limit;
  asking.pause = limit / kFirstPause;
  // The hotel rounds up by a quarter at most.
  asking.end = now + limit / 5 * 4;
  asking.there = asking.back = {};
  asking.elsewhere_there = asking.elsewhere_here = asking.wrong = 0;
  arm_asking(now, asking, now + delay);
}

wire::CheckRound Engine::Impl::next_round(Peer& peer) {
  const wire::CheckRound& before = checking_of(peer).asking.round;
  const std::uint64_t random = random_.next();
  const auto count = before.token == 0 ? random >> 48 : before.count + 1u;
  // Whoever shows it has seen our question; the slot is how we find the peer.
  return {.count = static_cast<std::uint16_t>(count), .token = random << kSlotBits | peer.id.index};
}

Checking& Engine::Impl::checking_of(Peer& peer) {
  if (peer.checking == nullptr) {
    peer.checking = std::make_unique<Checking>();
    Checking& made = *peer.checking;
    for (Timer* timer : {&made.asking.timer, &made.answering.timer, &made.doubt.timer}) {
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
  if (&timer == &peer.checking->doubt.timer) return handle_liveness_due(now, peer);
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
      if ((asking.there[s] & asking.back[s] & bit_of(rail)) == 0) ask_on(rail, size);
    }
  });
}

void Engine::Impl::ask_on(const Rail& rail, CheckSize size) {
  const wire::Check check{.round = rail.peer.checking->asking.round,
                          .size = size,
                          .epoch = rail.peer.epoch,
                          .called = nic::Address(rail.remote),
                          .reply_to = command(rail).port().address()};
  auto packet = packet_of(check_bytes(rail, size), rail.peer.theirs, rail.number);
  wire::put_check(frame_of(packet), check);
  send_check(rail, size, packet);
}

// Of a question.
std::size_t Engine::Impl::check_bytes(const Rail& rail, CheckSize size) {
  if (size == CheckSize::kLargest) return rail.link.path().most();
  return wire::kHeaderBytes +
         wire::least_check_bytes(nic::Address(rail.remote), command(rail).port().address());
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
  asking.outdated = 0;
  asking.found_at = polled_until_;  // of this turn
  peer.for_each_rail([&](const Rail& rail) {
    const RailFinding found = finding_of(asking, bit_of(rail));
    asking.found[rail.number] = found;
    if (found == RailFinding::kFine) return;
    log().info("rail {} by {}: {}", rail.number, module_of(rail).device().name, to_sentence(found));
    tell_other_nic(rail, found);
  });
}

// Once: it is the host's setting, and its other rails are the same.
void Engine::Impl::tell_other_nic(const Rail& rail, RailFinding found) {
  const bool other = found == RailFinding::kOtherNicThere || found == RailFinding::kOtherNicHere;
  if (!other || std::exchange(told_other_nic_, true)) return;
  log().warn("rail {} by {} to {} is not independent of the others: {}", rail.number,
             module_of(rail).device().name, nic::to_string(rail.remote), to_sentence(found));
}

// By the driver's word.
bool Engine::Impl::came_by_another_nic(std::span<const std::byte> part) const {
  for (const nic::Incoming& incoming : current_batch_) {
    const std::byte* const end = incoming.bytes.data() + incoming.bytes.size();
    if (part.data() < incoming.bytes.data() || part.data() > end) continue;
    return channel_in_hand_->port().by_another_nic(incoming);
  }
  return false;
}

// The peer has ended, too.
void Engine::Impl::end_checking(Peer& peer) {
  if (peer.checking == nullptr) return;
  if (peer.checking->asking.running) end_asking(peer);
  for (Timer* timer : {&peer.checking->answering.timer, &peer.checking->doubt.timer}) {
    if (timer->checked_in()) alarms_.check_out(*timer);
  }
}

void Engine::Impl::show_finding(Instant now, const Rail& rail, RailView& view) {
  if (rail.peer.checking == nullptr) return;
  const Asking& asking = rail.peer.checking->asking;
  if ((asking.outdated & bit_of(rail)) != 0) return;
  view.check = asking.found[rail.number];
  if (view.check != RailFinding::kNotChecked) view.checked_ago = now - asking.found_at;
}

// It carries again: a fault that was found is of before.
void Engine::Impl::forget_fault(const Rail& rail) {
  if (rail.peer.checking == nullptr) return;
  Asking& asking = rail.peer.checking->asking;
  if (asking.found[rail.number] != RailFinding::kFine) asking.outdated |= bit_of(rail);
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
    const RailView view = this->view(polled_until_, rail);
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

// What calls itself the largest has to be: so long an answer has had so long a question, and what
// it shows is true. What comes on rail 0 may have come by another pair of NICs than ours leaves by.
std::size_t Engine::Impl::least_length(const Rail& rail, CheckSize size) const {
  if (size != CheckSize::kLargest) return 0;
  const Rails* rails = rail.peer.rails.get();
  const bool named = rail.number == 0 && rails != nullptr && rails->paired &&
                     rails->their_ways.home < rails->theirs.size();
  if (!named) return rail.link.path().most();
  return std::min<std::size_t>(
      modules_[upkeep_of(rail).here]->channel(ChannelKind::kData).packet_bytes(),
      rails->theirs[rails->their_ways.home].data_packet_bytes);
}

// One CHECK or CHECKED, and nothing else (wire.md 2.2). By another NIC than the rail's it says
// nothing of the rail.
Verdict Engine::Impl::handle_check(Instant now, Rail& rail, const wire::PacketHeader& header) {
  const wire::Frame* frame = frames_.next();
  if (frame == nullptr) return Verdict::kBadFrame;
  const wire::Frame only = *frame;
  if (frames_.next() != nullptr) return Verdict::kBadFrame;
  if (!rail.peer.introduced || rail.peer.phase == Phase::kGone) return Verdict::kWrongState;
  if (!rail.peer.flows()) return Verdict::kAccepted;  // no answer can leave yet: it asks again
  const bool own_way = came_by(rail);
  if (only.type == wire::FrameType::kCheck) {
    const auto check = wire::decode_check(only.data);
    if (!check || header.length < least_length(rail, check->size)) return Verdict::kBadFrame;
    if (own_way) take_question(now, rail, *check, came_by_another_nic(only.data));
    return Verdict::kAccepted;
  }
  if (only.type != wire::FrameType::kChecked) return Verdict::kBadFrame;
  const auto checked = wire::decode_checked(only.data);
  if (!checked || checked->stranger || header.length < least_length(rail, checked->size)) {
    return Verdict::kBadFrame;
  }
  if (own_way) take_answer(rail, *checked, came_by_another_nic(only.data));
  return Verdict::kAccepted;
}

void Engine::Impl::take_answer(const Rail& rail, const wire::Checked& checked, bool elsewhere) {
  Peer& peer = rail.peer;
  if (peer.checking == nullptr) return;
  Asking& asking = peer.checking->asking;
  if (checked.round != asking.round) return;
  if (!asking.running) return clear_liveness_probe(peer);
  asking.back[index_of(checked.size)] |= bit_of(rail);
  if (elsewhere) asking.elsewhere_here |= bit_of(rail);
  asking.elsewhere_there |= checked.elsewhere;
  for (std::size_t s = 0; s < wire::kCheckSizes; ++s) asking.there[s] |= checked.arrived[s];
  RailBits rails = 0;
  peer.for_each_rail([&](const Rail& one) { rails |= bit_of(one); });
  if (is_complete(asking, rails)) end_asking(peer);
}

}  // namespace pullman::engine
