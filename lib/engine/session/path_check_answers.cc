#include <algorithm>
#include <utility>

#include "engine/session/check_packet.h"
#include "engine/session/path_check.h"

namespace pullman::engine {

using wire::CheckSize;
using wire::RailBits;

namespace {

// What has arrived of a round is answered after kAnswerDelay, but at least kAnswerGap after the
// last answer.
constexpr Duration kAnswerDelay = std::chrono::microseconds(20);
constexpr Duration kAnswerGap = std::chrono::milliseconds(1);
constexpr std::uint8_t kAnswersPerRound = 16;
// The state of a peer that asks no more is freed after this time.
constexpr Duration kAnswersKept = std::chrono::seconds(2);
}  // namespace

void PathCheck::handle_question(Instant now, const Rail& rail, const wire::Check& check,
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
  if (check.round != answering.round) return;  // it is of an earlier round
  answering.arrived[index_of(check.size)] |= bit_of(rail);
  if (elsewhere) answering.elsewhere |= bit_of(rail);
  if (check.size == CheckSize::kLargest) answering.large_owed |= bit_of(rail);
  if (answering.due || answering.left == 0) return;
  answering.due = true;
  const Duration gap = answering.answered_at == Instant::min()
                           ? Duration(0)
                           : answering.answered_at + kAnswerGap - now;
  alarms_.rearm(now, std::max(gap, kAnswerDelay), answering.timer);
}

// Sends short answers on all rails, since the peer may hear us on one where we do not hear it, and
// a long answer for each long question, on the rail it came by. So nobody makes us send much to an
// address that it only claims to have.
void PathCheck::handle_answers_due(Instant now, Peer& peer) {
  Answering& answering = peer.checking->answering;
  if (!std::exchange(answering.due, false)) {
    const Asking& asking = peer.checking->asking;
    const bool probed = peer.checking->probe.timer.checked_in();
    if (asking.round.token == 0 && !probed) peer.checking.reset();
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
  alarms_.rearm(now, kAnswersKept, answering.timer);
}

void PathCheck::answer_on(const Rail& rail, CheckSize size) const {
  const Answering& answering = rail.peer.checking->answering;
  const std::size_t bytes = size == CheckSize::kLargest
                                ? rail.link.path().most() - data(rail).initial_bytes()
                                : wire::kHeaderBytes + wire::kCheckedBytes;
  auto packet = packet_of(bytes, rail.peer.theirs, rail.number);
  wire::put_checked(frame_of(packet), {.round = answering.round,
                                       .size = size,
                                       .arrived = answering.arrived,
                                       .elsewhere = answering.elsewhere});
  sender_.send_check(rail, size, packet);
}

// A packet that claims to be the largest must have that length: then each long answer has had a
// long question, and what it shows is true. What comes on rail 0 may have come by another pair of
// NICs than ours leaves by.
std::size_t PathCheck::least_length(const Rail& rail, CheckSize size) const {
  if (size != CheckSize::kLargest) return 0;
  const Rails* rails = rail.peer.rails.get();
  const bool named = rail.number == 0 && rails != nullptr && rails->paired &&
                     rails->their_ways.home < rails->theirs.size();
  const std::size_t most =
      named ? std::min<std::size_t>(
                  nics_[upkeep_of(rail).here].channel(ChannelKind::kData).packet_bytes(),
                  rails->theirs[rails->their_ways.home].data_packet_bytes)
            : rail.link.path().most();
  return most - data(rail).initial_bytes();
}

}  // namespace pullman::engine
