// A bounded pool of equal objects, each allocated once. take() returns null if the pool is empty;
// the caller decides what that means (back-pressure, a status). Objects are reused in LIFO order,
// so they are likely to be in the cache.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "base/check.h"

namespace pullman {

// A pool of default-constructed T, which live as long as the pool. take() does not reset an object:
// it has the state that its last user left.
template <typename T>
class Pool {
 public:
  explicit Pool(std::size_t capacity) : capacity_(capacity) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Returns a free object. Creates objects on first need, up to the capacity.
  T* take() {
    if (free_.empty()) {
      if (made_.size() == capacity_) return nullptr;
      made_.push_back(std::make_unique<T>());
      free_.reserve(made_.capacity());  // so that give_back() allocates nothing
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
