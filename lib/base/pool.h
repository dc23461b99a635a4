// A bounded pool of equal objects, allocated once. take() returns null when it is empty: the caller
// says what that means (back-pressure, a status). Objects are reused in LIFO order, warm in the
// cache.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "base/check.h"

namespace pullman {

// Pool of default-constructed T. T's lifetime is the pool's; take() hands out whatever state the
// last user left, so users reset what they need.
template <typename T>
class Pool {
 public:
  explicit Pool(std::size_t capacity) : capacity_(capacity) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Creates objects on first need, up to the capacity: after warm-up nothing is allocated.
  T* take() {
    if (free_.empty()) {
      if (made_.size() == capacity_) return nullptr;
      made_.push_back(std::make_unique<T>());
      free_.reserve(made_.capacity());  // give_back() allocates nothing
      return made_.back().get();
    }
    T* object = free_.back();
    free_.pop_back();
    return object;
  }

  void give_back(T* object) {
    PULLMAN_DCHECK(free_.size() < made_.size());
    free_.push_back(object);
  }

  std::size_t in_use() const { return made_.size() - free_.size(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::vector<std::unique_ptr<T>> made_;
  std::vector<T*> free_;
};

}  // namespace pullman
