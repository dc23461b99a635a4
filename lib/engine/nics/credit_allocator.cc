#include "engine/nics/credit_allocator.h"

#include <algorithm>

namespace pullman::engine {

void CreditAllocator::begin_tick(std::uint64_t tick) {
  heard_last_tick_ = tick == tick_ + 1 ? heard_this_tick_ : 0;
  heard_this_tick_ = 0;
  tick_ = tick;
  share();
}

void CreditAllocator::share() {
  const std::uint32_t active = std::max({heard_this_tick_, heard_last_tick_, 1u});
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    const std::size_t share = nics_[i].receive_packets() / active;
    credits_[i] = static_cast<std::uint16_t>(std::clamp<std::size_t>(share, 1, wire::kMaxCredit));
  }
}

}  // namespace pullman::engine
