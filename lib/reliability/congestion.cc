#include "reliability/congestion.h"

#include <algorithm>
#include <cmath>

namespace pullman::reliability {
namespace {

using std::chrono::microseconds;

// The more flows share a queue, the smaller their windows and the larger its oscillation. The
// target is raised by kScaling for a window of one packet, by nothing for kScaledWindow (Swift,
// section 3.5).
constexpr Duration kScaling = microseconds(500);
constexpr double kScaledWindow = 100;

// A round with a loss and a queue costs one kQueueLoss-th of the window.
constexpr std::uint32_t kQueueLoss = 4;
// After kIneffectiveRounds rounds above the target with at most kFew packets in flight the path's
// own RTT is taken to be above the target.
constexpr std::uint32_t kFew = 4;
constexpr std::uint8_t kIneffectiveRounds = 8;
// The same for a path that has been seen short. More likely many other flows share its queue, and a
// flow that takes the path for a long one takes their share. But routes do change.
constexpr std::uint8_t kIneffectiveRoundsOfShort = 200;

// On a lossy path the window does not shrink below this, with or without a queue: with fewer
// packets in flight every loss costs a timeout, and timeouts come faster than ACKs.
constexpr std::uint32_t kLossless = 4;
// One packet in this many of a round may be lost at random.
constexpr std::uint32_t kRandomLoss = 12;
// A delay below this means no queue, whatever the minimum RTT, which is too high if there has
// always been a queue.
constexpr Duration kShort = microseconds(100);

// Returns the delay above which there is a queue, if the minimum RTT is the path's own.
constexpr Duration queueing_above(Duration least) {
  return 2 * least + microseconds(50);
}

}  // namespace

Congestion::Congestion(std::uint32_t limit)
    : limit_(limit * kPacket),
      fine_(std::min(limit, kInitial) * kPacket),
      window_(fine_ / kPacket) {}

void Congestion::end_round(const Ack& ack) {
  const Duration delay = round_least_;
  if (delay < base_) base_ -= (base_ - delay) / 8;
  const Duration aim = delay > kTarget ? target() : kTarget;
  const Duration queueing = queueing_above(ack.least);
  const std::uint32_t seen = acked_ + lost_;
  lossy_ = lost_ * kRandomLoss > seen;
  if (delay > aim) {
    const auto excess = static_cast<std::uint64_t>((delay - aim).count());
    shrink(part(excess, static_cast<std::uint64_t>(delay.count())));
    note_ineffective(delay, ack.least);
  } else if (delay > queueing && lost_ > 0) {
    shrink(std::max(fine_ / kQueueLoss, part(lost_, seen)));
  } else if (lossy_) {
    if (fine_ > kLossless * kPacket) shrink(part(lost_, seen));
  } else if (was_limiting_) {
    grow(delay, queueing);
  }
  if (delay <= aim) ineffective_rounds_ = 0;
  acked_ = lost_ = 0;
  round_least_ = Duration::max();
  was_limiting_ = false;
  round_end_ = ack.next_number;
}

// Counts rounds in which a window of a few packets did not lower the delay. After enough of them
// the delay is taken to be the path's own.
void Congestion::note_ineffective(Duration delay, Duration least) {
  if (fine_ > kFew * kPacket) return;
  if (++ineffective_rounds_ < (may_be_short_ ? kIneffectiveRoundsOfShort : kIneffectiveRounds))
    return;
  ineffective_rounds_ = 0;
  base_ = may_be_short_ ? delay : std::min(delay, least);
  slow_start_ = true;
}

void Congestion::grow(Duration delay, Duration queueing) {
  if (delay > queueing) slow_start_ = false;
  const Duration short_path = base_ > Duration(0) ? base_ + kShort / 2 : kShort;
  if (slow_start_) {
    settle(fine_ * 2);
  } else if (delay > std::min(queueing, short_path)) {
    settle(fine_ + std::min(kPacket, fine_ / 8));
  } else {
    settle(fine_ + kPacket + fine_ / 8);
  }
}

void Congestion::shrink(Fine by) {
  slow_start_ = false;
  settle(fine_ - std::min(by, fine_ / 2));
}

void Congestion::settle(Fine next) {
  // The lower bound for a lossy path does not enlarge a smaller window.
  const Fine least = lossy_ ? std::min(kLossless * kPacket, fine_) : kLeast * kPacket;
  fine_ = std::clamp(next, std::min(least, limit_), limit_);
  window_ = fine_ / kPacket;
}

Duration Congestion::target() const {
  const Duration base = std::max(kTarget, base_ + base_ / 8);
  const double root = std::sqrt(static_cast<double>(fine_) / kPacket / kScaledWindow);
  if (root >= 1) return base;
  // The addition goes from 0 at kScaledWindow to kScaling at one packet.
  constexpr double kMost = 10 - 1;
  return base + Duration(static_cast<Duration::rep>(static_cast<double>(kScaling.count()) *
                                                    (1 / root - 1) / kMost));
}

void Congestion::on_timeout() {
  if (before_timeouts_ == 0) before_timeouts_ = static_cast<std::uint16_t>(window_);
  shrink(fine_ / 2);
}

// If the network was quick, then what was not heard for so long was the peer.
void Congestion::judge_timeouts(Duration delay) {
  if (delay <= kTarget) settle(std::max(fine_, before_timeouts_ * kPacket));
  before_timeouts_ = 0;
}

}  // namespace pullman::reliability
