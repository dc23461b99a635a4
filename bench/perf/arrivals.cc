#include "arrivals.h"

#include <algorithm>

namespace perf {

void Roll::note(std::uint64_t number) {
  if (number >= next_) {
    if (number > next_) missing_.emplace(next_, number);
    next_ = number + 1;
    ++different_;
  } else if (found(number)) {
    ++misordered_;
    ++different_;
  } else {
    ++duplicated_;
  }
}

bool Roll::found(std::uint64_t number) {
  auto at = missing_.upper_bound(number);
  if (at == missing_.begin()) return false;
  --at;
  const auto [first, past] = *at;
  if (number >= past) return false;
  missing_.erase(at);
  if (first < number) missing_.emplace(first, number);
  if (number + 1 < past) missing_.emplace(number + 1, past);
  return true;
}

std::uint64_t Roll::lost(std::uint64_t sent) const {
  return sent > different_ ? sent - different_ : 0;
}

void Buckets::add(Clock::time_point now, std::uint64_t bytes) {
  const auto since = std::max(Clock::duration(0), now - start_);
  const auto index = static_cast<std::size_t>(since / kBucket);
  if (index < kMaxBuckets) {
    if (index >= buckets_.size()) buckets_.resize(index + 1);
    Bucket& bucket = buckets_[index];
    bucket.bytes += bytes;
    if (last_ != Clock::time_point{}) {
      using std::chrono::microseconds;
      const auto gap = std::chrono::duration_cast<microseconds>(now - last_).count();
      if (gap > bucket.gap_us) {
        bucket.gap_us = static_cast<std::uint32_t>(std::min<std::int64_t>(gap, 0xFFFFFFFF));
        bucket.gap_end_us = static_cast<std::uint32_t>(
            std::chrono::duration_cast<microseconds>(since - index * kBucket).count());
      }
    }
  }
  last_ = now;
}

}  // namespace perf
