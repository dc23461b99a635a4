// What share of a rail's packets is lost, and whether a smaller window would end the losses.
//
// A queue that overflows loses packets, too, most of all when a window that has doubled for long
// meets it: the rail is sound, the window shrinks, and the losses end. So the share is taken over
// spans of a whole window or more, and only what several spans in a row have lost tells against the
// rail. Pure: does not know links.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace pullman::failover {

class LossRate {
 public:
  // `arrived` and `lost` count the packets of the rail's link since it exists; `window` is its
  // congestion window. Returns true if that has ended a span.
  bool handle_ack(std::uint64_t arrived, std::uint64_t lost, std::uint32_t window) {
    const std::uint64_t gone = lost - lost_;
    const std::uint64_t seen = arrived - arrived_ + gone;
    if (seen < span_) return false;
    const double share = static_cast<double>(gone) / static_cast<double>(seen);
    smoothed_ = (smoothed_ + share) / 2;
    shares_[spans_++ % shares_.size()] = share;
    arrived_ = arrived;
    lost_ = lost;
    span_ = std::max(kShortest, window);
    return true;
  }

  // Returns the share of packets lost lately, whatever the cause.
  double recent() const { return smoothed_; }
  // Returns the share of packets that is lost although the window had time to shrink.
  double lasting() const { return *std::min_element(shares_.begin(), shares_.end()); }

  // What was lost before now tells nothing of what follows.
  void forget() {
    smoothed_ = 0;
    shares_ = {};
  }

 private:
  // In packets.
  static constexpr std::uint32_t kShortest = 128;
  // The losses of one overflow are spread over two spans at most.
  static constexpr std::size_t kSpans = 3;

  double smoothed_ = 0;
  std::array<double, kSpans> shares_{};
  std::size_t spans_ = 0;
  std::uint64_t arrived_ = 0;  // before this span
  std::uint64_t lost_ = 0;
  std::uint64_t span_ = kShortest;  // the packets that this span takes
};

}  // namespace pullman::failover
