#include "failover/striping.h"

#include <algorithm>

namespace pullman::failover {
namespace {

// Rails are compared by the delivery of this many packets, a burst of the kernel's UDP, or of the
// window if it is smaller: a rail whose window has become small would otherwise never be used, and
// its window never grow.
constexpr std::uint64_t kBurst = 32;
// A rail is clearly better if its RTT is lower by a quarter.
constexpr int kClearly = 4;

// A rail without an RTT sample counts as fast, so that it is used and gets one.
Duration known(Duration rtt) {
  return std::max(rtt, Duration(std::chrono::microseconds(1)));
}

}  // namespace

Duration Load::time_for(std::uint64_t packets) const {
  const auto behind = static_cast<double>(in_flight + packets);
  const double trips = std::max(1.0, behind / std::max(window, 1u));
  return std::chrono::duration_cast<Duration>(known(rtt) * trips);
}

std::size_t rail_for_bulk(std::span<const Load> rails, std::uint64_t left) {
  const auto time_for_next = [left](const Load& rail) {
    return rail.time_for(std::min({left, kBurst, std::uint64_t{rail.window}}));
  };
  std::size_t first = kNoRail;  // the rail that delivers the next packets first
  std::size_t best = kNoRail;   // the same of the rails that may send now
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (rails[i].window == 0) continue;
    const Duration time = time_for_next(rails[i]);
    if (first == kNoRail || time < time_for_next(rails[first])) first = i;
    if (!rails[i].may_send) continue;
    if (best == kNoRail || time < time_for_next(rails[best])) best = i;
  }
  if (best == kNoRail || best == first) return best;
  return rails[first].time_for(left) < time_for_next(rails[best]) ? kNoRail : best;
}

std::size_t rail_for_small(std::span<const Load> rails, std::size_t preferred) {
  std::size_t best = kNoRail;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (!rails[i].may_send || rails[i].window == 0) continue;
    if (best == kNoRail || known(rails[i].rtt) < known(rails[best].rtt)) best = i;
  }
  const bool keeps =
      preferred < rails.size() && rails[preferred].may_send && rails[preferred].window != 0 &&
      best != kNoRail &&
      known(rails[best].rtt) * kClearly > known(rails[preferred].rtt) * (kClearly - 1);
  return keeps ? preferred : best;
}

}  // namespace pullman::failover
