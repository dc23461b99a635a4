#include "engine/session/path_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/log.h"
#include "engine/peer/rail_view.h"
#include "engine/session/check_packet.h"

namespace pullman::engine {

using wire::CheckSize;
using wire::RailBits;

namespace {

// A question is sent this many times, with pauses that double, before it counts as lost.
constexpr std::uint8_t kTries = 4;
// The first pause is this part of the time limit.
constexpr int kFirstPause = 16;
constexpr Duration kMaxTime = std::chrono::hours(1);
// The time limit for new rails, which come one after the other, and how long to gather them into
// one check.
constexpr Duration kNewRailsTime = std::chrono::seconds(1);
constexpr Duration kGathering = std::chrono::milliseconds(1);

constexpr std::array kSizes{CheckSize::kSmallest, CheckSize::kLargest};

// A long answer comes on the rail by which its question came, so it shows that both got through.
bool is_complete(const Asking& asking, RailBits rails) {
  const RailBits all = asking.there[0] & asking.back[0] & asking.back[1];
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
  if (!has(asking.back[1])) return RailFinding::kLargeLost;
  if (has(asking.elsewhere_there)) return RailFinding::kOtherNicThere;
  return has(asking.elsewhere_here) ? RailFinding::kOtherNicHere : RailFinding::kFine;
}

}  // namespace

Status PathCheck::begin(Instant now, PeerId id, Duration limit) {
  Peer* peer = peers_.find(id);
  if (peer == nullptr) return Status::kUnknownPeer;
  if (limit <= Duration(0) || limit > kMaxTime) return Status::kInvalidArgument;
  if (peer->phase >= Phase::kClosing) {
    return peer->phase == Phase::kGone ? peer->why : Status::kPeerClosed;
  }
  start_asking(now, *peer, limit, Duration(0));
  return Status::kOk;
}

void PathCheck::check_new_rail(Instant now, Peer& peer) {
  if (peer.checking == nullptr || !peer.checking->asking.running) {
    return start_asking(now, peer, kNewRailsTime, kGathering);
  }
  Asking& asking = peer.checking->asking;
  asking.tries = 0;
  asking.pause = asking.limit / kFirstPause;
  arm_asking(now, asking, now + std::min(kGathering, asking.pause));
}

void PathCheck::start_asking(Instant now, Peer& peer, Duration limit, Duration delay) {
  Asking& asking = checking_of(peer).asking;
  asking.round = next_round(peer);
  asking.running = true;
  peer.checking->probe.asked = false;
  asking.tries = 0;
  asking.limit = limit;
  asking.pause = limit / kFirstPause;
  // The hotel rounds up by a quarter at most, so the check ends within its limit.
  asking.end = now + limit / 5 * 4;
  asking.there = asking.back = {};
  asking.elsewhere_there = asking.elsewhere_here = asking.wrong = 0;
  arm_asking(now, asking, now + delay);
}

wire::CheckRound PathCheck::next_round(Peer& peer) {
  const wire::CheckRound& before = checking_of(peer).asking.round;
  const std::uint64_t random = random_.next();
  const auto count = before.token == 0 ? random >> 48 : before.count + 1u;
  // A sender that shows the token has seen our question; the slot in it finds the peer.
  return {.count = static_cast<std::uint16_t>(count), .token = random << kSlotBits | peer.id.index};
}

void PathCheck::arm_asking(Instant now, Asking& asking, Instant due) {
  alarms_.rearm(now, std::min(due, asking.end) - now, asking.timer);
}

void PathCheck::handle_asking_due(Instant now, Peer& peer) {
  Asking& asking = peer.checking->asking;
  if (now >= asking.end) return end_asking(peer);
  const bool ready = peer.flows() && (peer.rails == nullptr || peer.rails->paired);
  if (!ready) return arm_asking(now, asking, now + asking.pause);
  ask(peer);
  const bool last = ++asking.tries >= kTries;
  arm_asking(now, asking, last ? asking.end : now + asking.pause);
  asking.pause *= 2;
}

// Sends the questions that have not been answered yet.
void PathCheck::ask(const Peer& peer) const {
  const Asking& asking = peer.checking->asking;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved()) return;
    for (const CheckSize size : kSizes) {
      const std::size_t s = index_of(size);
      if ((asking.there[s] & asking.back[s] & bit_of(rail)) == 0) ask_on(rail, size);
    }
  });
}

// What is asked whether it is still the same process may be one that has only another of the job's
// keys: they take turns, each on all rails.
std::optional<std::uint8_t> PathCheck::key_for(const Peer& peer) const {
  const Asking& asking = peer.checking->asking;
  if (keys_ == 0 || asking.running) return std::nullopt;
  std::size_t rails = 0;
  peer.for_each_rail([&](const Rail&) { ++rails; });
  return static_cast<std::uint8_t>(asking.round.count / rails % keys_);
}

void PathCheck::ask_on(const Rail& rail, CheckSize size) const {
  const wire::Check check{.round = rail.peer.checking->asking.round,
                          .size = size,
                          .epoch = rail.peer.epoch,
                          .called = nic::Address(rail.remote),
                          .reply_to = command(rail).port().address()};
  auto packet = packet_of(check_bytes(rail, size), rail.peer.theirs, rail.number);
  wire::put_check(frame_of(packet), check);
  sender_.send_check(rail, size, packet, key_for(rail.peer));
}

// Ends a check: what is known by now is its result.
void PathCheck::end_asking(Peer& peer) {
  Asking& asking = peer.checking->asking;
  alarms_.cancel(asking.timer);
  asking.running = false;
  asking.ended = true;
  asking.found = {};
  asking.outdated = 0;
  asking.found_at = clock_.polled_until();  // of this turn
  peer.for_each_rail([&](const Rail& rail) {
    RailFinding found = finding_of(asking, bit_of(rail));
    // A relay need have no other way to a neighbour than the direct one: that is no fault.
    const bool spare = rail.nic->device().relayed && peer.rails != nullptr;
    if (spare && found == RailFinding::kUnreachable) found = RailFinding::kNotChecked;
    asking.found[rail.number] = found;
    if (found == RailFinding::kFine || found == RailFinding::kNotChecked) return;
    log().info("rail {} by {}: {}", rail.number, rail.nic->device().name, to_sentence(found));
    warn_other_nic(rail, found);
  });
}

// Warns once: the cause is a setting of the host, and the same for its other rails.
void PathCheck::warn_other_nic(const Rail& rail, RailFinding found) {
  const bool other = found == RailFinding::kOtherNicThere || found == RailFinding::kOtherNicHere;
  if (!other || std::exchange(warned_other_nic_, true)) return;
  log().warn("rail {} by {} to {} is not independent of the others: {}", rail.number,
             rail.nic->device().name, nic::to_string(rail.remote), to_sentence(found));
}

void PathCheck::end(Peer& peer) {
  if (peer.checking == nullptr) return;
  if (peer.checking->asking.running) end_asking(peer);
  alarms_.cancel(peer.checking->answering.timer);
  alarms_.cancel(peer.checking->probe.timer);
}

std::optional<std::vector<RailCheck>> PathCheck::result(PeerId id) const {
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
    const RailView view = rail_view(clock_.polled_until(), rail);
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

void PathCheck::handle_answer(const Rail& rail, const wire::Checked& checked, bool elsewhere) {
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
