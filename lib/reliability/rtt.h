// The RTT estimate and the timeout (RFC 6298 section 2, RFC 9002 section 5).
//
// The peer's hold time is already subtracted from the samples. Reads no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace pullman::reliability {

class Rtt {
 public:
  // `initial` is the timeout before the first sample, `floor` its lower bound after that. Both are
  // kept in whole microseconds.
  Rtt(Duration initial, Duration floor)
      : initial_(std::chrono::duration_cast<Brief>(initial)),
        floor_(std::chrono::duration_cast<Brief>(floor)) {}

  // Adds a sample, which is above 0 and from which `hold` was subtracted. The peer counts the hold
  // time from its last clock reading, which may precede the packet's arrival, so up to all of it
  // may belong to the RTT; the minimum RTT therefore includes it if it is shorter than the sample.
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

  // Forgets all samples but the latest.
  void reset_path_state() {
    smoothed_ = least_ = latest_;
    variation_ = latest_ / 2;
  }

  // Returns the probe timeout: SRTT + 4 RTTVAR + the ACK delay (RFC 9002 6.2.1; the peer's is not
  // known, so it is taken to be ours), and at least two RTTs (RFC 8985 7.2), since the variation
  // lags behind a queue that fills.
  Duration timeout(Duration ack_delay) const {
    if (!sampled_) return initial_;
    const Duration pto =
        std::max<Duration>(smoothed_ + std::max(4 * variation_, smoothed_) + ack_delay, floor_);
    // The initial value is also the upper bound, unless two RTTs and the ACK delay exceed it.
    return std::min(pto, std::max<Duration>(initial_, 2 * smoothed_ + ack_delay));
  }

  // Returns the expected RTT: the greater of the latest and the smoothed one. Before the first
  // sample it is a third of the initial timeout, which stands for three RTTs (RFC 9002 6.2.2).
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
