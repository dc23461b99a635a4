#include "reliability/congestion.h"

#include <algorithm>

namespace pullman::reliability {

void Congestion::on_ack(const Ack& ack) {
  acked_ += ack.acked;
  if (ack.in_flight + ack.in_flight / 4 >= window_) was_limiting_ = true;
  if (ack.highest_acked >= round_end_) end_round(ack);
}

void Congestion::end_round(const Ack& ack) {
  const std::uint32_t seen = acked_ + lost_;
  const Duration target = kTargetFactor * ack.least + kTargetQueue;
  std::uint32_t next = window_;
  if (lost_ * 50 > seen) {
    next = window_ - std::min(window_ / 2, static_cast<std::uint32_t>(
                                               static_cast<std::uint64_t>(window_) * lost_ / seen));
    slow_start_ = false;
  } else if (ack.rtt > target) {
    const auto excess = static_cast<std::uint64_t>((ack.rtt - target).count());
    const auto whole = static_cast<std::uint64_t>(ack.rtt.count());
    next = window_ - std::min(window_ / 2, static_cast<std::uint32_t>(window_ * excess / whole));
    slow_start_ = false;
  } else if (was_limiting_) {
    next = slow_start_ ? window_ * 2 : window_ + 1 + window_ / 16;
  }
  window_ = std::clamp(next, std::min(kLeast, limit_), limit_);
  acked_ = lost_ = 0;
  was_limiting_ = false;
  round_end_ = ack.next_number;
}

void Congestion::on_timeout() {
  window_ = std::max(std::min(kLeast, limit_), window_ / 2);
  slow_start_ = false;
}

}  // namespace pullman::reliability
