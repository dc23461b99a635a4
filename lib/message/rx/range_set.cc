#include "message/rx/range_set.h"

#include <algorithm>

namespace pullman::message {

RangeSet::Added RangeSet::add(Range range, std::size_t most) {
  if (range.end <= prefix_) return Added::kRedundant;
  if (range.begin > prefix_) return insert(range, most);
  prefix_ = range.end;
  auto swallowed = beyond_.begin();
  while (swallowed != beyond_.end() && swallowed->begin <= prefix_) {
    prefix_ = std::max(prefix_, swallowed->end);
    ++swallowed;
  }
  beyond_.erase(beyond_.begin(), swallowed);
  return Added::kNew;
}

// Inserts a range beyond the prefix: merges it with every range that it overlaps or touches.
RangeSet::Added RangeSet::insert(Range range, std::size_t most) {
  auto first = std::lower_bound(beyond_.begin(), beyond_.end(), range.begin,
                                [](const Range& r, std::uint64_t at) { return r.end < at; });
  if (first != beyond_.end() && first->begin <= range.begin && range.end <= first->end) {
    return Added::kRedundant;
  }
  auto last = first;
  while (last != beyond_.end() && last->begin <= range.end) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
    ++last;
  }
  if (first == last) {
    if (beyond_.size() >= most) return Added::kRefused;
    if (beyond_.size() == beyond_.capacity()) {
      const auto at = first - beyond_.begin();
      beyond_.reserve(std::min(most, std::max<std::size_t>(4, 2 * beyond_.size())));
      first = beyond_.begin() + at;
    }
    beyond_.insert(first, range);
  } else {
    *first = range;
    beyond_.erase(first + 1, last);
  }
  return Added::kNew;
}

}  // namespace pullman::message
