// Round-trip time and what follows from it (RFC 6298 section 2, RFC 9002 section 5).
//
// Fed with samples from which the peer's hold time is already taken off. Reads no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace pullman::reliability {

class Rtt {
 public:
  // `initial`: the timeout before the first sample. `floor`: the least one after it. Kept in whole
  // microseconds.
  Rtt(Duration initial, Duration floor)
      : initial_(std::chrono::duration_cast<Brief>(initial)),
        floor_(std::chrono::duration_cast<Brief>(floor)) {}

  // Above 0. `hold` was taken off: the peer reckons it from when its clock was read, which may be
  // before the packet came, so as much of it as there is may be part of the round trip.
  void add(Duration sample, Duration hold = {}) {
    latest_ = sample;
    if (!sampled_) {
      sampled_ = true;
      return reset_path_state();
    }
    least_ = std::min(least_, hold < sample ? sample : sample + hold);
    const Duration error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
    variation_ += (error - variation_) / 4;
    smoothed_ += (sample - smoothed_) / 8;
  }

  // What was seen before the latest sample counts no more.
  void reset_path_state() {
    smoothed_ = least_ = latest_;
    variation_ = latest_ / 2;
  }

  // After how long without an ack to ask: SRTT + 4 RTTVAR + the peer's ACK delay (RFC 9002 6.2.1),
  // and not before two round trips (RFC 8985 7.2): a queue that fills outruns the variation.
  Duration timeout(Duration ack_delay) const {
    if (!sampled_) return initial_;
    const Duration rto =
        std::max<Duration>(smoothed_ + std::max(4 * variation_, smoothed_) + ack_delay, floor_);
    // The initial value is also the ceiling, unless the round trip is larger.
    return std::min(rto, std::max<Duration>(initial_, 2 * smoothed_ + ack_delay));
  }

  // What a round trip takes: the greater of the latest and the smoothed one; before the first
  // sample a third of the initial timeout, which stands for three round trips (RFC 9002 6.2.2).
  Duration expected() const {
    return sampled_ ? std::max(latest_, smoothed_) : Duration(initial_) / 3;
  }

  bool sampled() const { return sampled_; }
  Duration smoothed() const { return smoothed_; }
  Duration latest() const { return latest_; }
  Duration least() const { return least_; }
  Duration variation() const { return variation_; }

 private:
  using Brief = std::chrono::duration<std::uint32_t, std::micro>;

  Brief initial_;
  Brief floor_;
  Duration smoothed_{};
  Duration variation_{};
  Duration latest_{};
  Duration least_{};
  bool sampled_ = false;
};

}  // namespace pullman::reliability
