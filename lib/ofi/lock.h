// One lock for everything of a domain, unless its user promised to call it by one thread at a time
// (FI_THREAD_DOMAIN): then locking costs a comparison.
#pragma once

#include <mutex>

namespace pullman::ofi {

class Lock {
 public:
  explicit Lock(bool needed) : needed_(needed) {}

  void lock() {
    if (needed_) mutex_.lock();
  }
  void unlock() {
    if (needed_) mutex_.unlock();
  }
  bool needed() const { return needed_; }

 private:
  std::mutex mutex_;
  const bool needed_;
};

using Locked = std::lock_guard<Lock>;

}  // namespace pullman::ofi
