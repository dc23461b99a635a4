#include "reliability/congestion.h"

#include <algorithm>
#include <cmath>

namespace pullman::reliability {
namespace {

using std::chrono::microseconds;

// The more flows there are, the smaller their windows, and the more they swing: so much more for a
// window of one packet, nothing for kScaledWindow (Swift, section 3.5).
constexpr Duration kScaling = microseconds(500);
constexpr double kScaledWindow = 100;

// A loss where there is a queue costs this part of the window.
constexpr std::uint32_t kQueueLoss = 4;
// So many rounds above the target with so few packets in flight: the path is longer than thought.
constexpr std::uint32_t kFew = 4;
constexpr std::uint8_t kIneffectiveRounds = 8;
// And if it was seen short, so many: rather there are many others in its queue, of whom those who
// take it for a long path take the others' share. But routes change.
constexpr std::uint8_t kIneffectiveRoundsOfShort = 200;

// Where so many are lost the window is never smaller than this, be there a queue or not: with fewer
// packets in flight every loss costs a timeout, and those come faster than acks.
constexpr std::uint32_t kLossless = 4;
// Of a round's packets one in so many may be lost at random.
constexpr std::uint32_t kRandomLoss = 12;
// Below this there is no queue, whatever the least round trip: that may have been seen when there
// always was one.
constexpr Duration kShort = microseconds(100);

// Above this there is a queue, if the least round trip is the path's own.
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

// Having next to nothing in flight does not bring the delay down: then the path is so long.
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
  // That it is lossy makes no window larger.
  const Fine least = lossy_ ? std::min(kLossless * kPacket, fine_) : kLeast * kPacket;
  fine_ = std::clamp(next, std::min(least, limit_), limit_);
  window_ = fine_ / kPacket;
}

Duration Congestion::target() const {
  const Duration base = std::max(kTarget, base_ + base_ / 8);
  const double root = std::sqrt(static_cast<double>(fine_) / kPacket / kScaledWindow);
  if (root >= 1) return base;
  // From 0 at kScaledWindow to kScaling at one packet.
  constexpr double kMost = 10 - 1;
  return base + Duration(static_cast<Duration::rep>(static_cast<double>(kScaling.count()) *
                                                    (1 / root - 1) / kMost));
}

void Congestion::on_timeout() {
  shrink(fine_ / 2);
}

}  // namespace pullman::reliability
