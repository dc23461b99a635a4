// A queue that grows instead of overflowing, and allocates nothing while it does not grow.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace pullman::ofi {

template <typename Value>
class Ring {
 public:
  explicit Ring(std::size_t at_least) {
    std::size_t size = 16;
    while (size < at_least) size *= 2;
    values_.resize(size);
  }

  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  Value& front() { return values_[first_]; }
  const Value& front() const { return values_[first_]; }

  // Adds an element, which the caller fills.
  Value& push() {
    if (count_ == values_.size()) grow();
    return values_[(first_ + count_++) & (values_.size() - 1)];
  }
  // Starts at the beginning when the queue is empty: one that seldom holds much stays in a few
  // cache lines.
  void pop() { first_ = --count_ == 0 ? 0 : (first_ + 1) & (values_.size() - 1); }

 private:
  void grow() {
    std::vector<Value> larger(values_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) {
      larger[i] = std::move(values_[(first_ + i) & (values_.size() - 1)]);
    }
    values_.swap(larger);
    first_ = 0;
  }

  std::vector<Value> values_;  // their number is a power of two
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace pullman::ofi
