// One lock for everything of a domain, which wakes who wants to know that it is taken.
#pragma once

#include <mutex>

#include "base/adaptive_mutex.h"

namespace pullman::ofi {

class Waiter;

class Lock {
 public:
  void lock() {
    mutex_.lock();
    if (sleeper_ != nullptr) [[unlikely]]
      wake_sleeper();
  }
  // By who may be the sleeper: takes it, and takes back what it asked for.
  void lock_awake() {
    mutex_.lock();
    sleeper_ = nullptr;
  }
  void unlock() { mutex_.unlock(); }
  // Who sleeps until the lock is taken next: it is rung once. Under the lock.
  void ring_when_taken(Waiter& sleeper) { sleeper_ = &sleeper; }

 private:
  friend class Turn;
  void wake_sleeper();

  AdaptiveMutex mutex_;
  Waiter* sleeper_ = nullptr;
};

using Locked = std::lock_guard<Lock>;

// The same for a call that moves packets and that applications make in a loop: without it who
// polls would leave the others nothing.
class Turn {
 public:
  explicit Turn(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Turn() {
    const bool owed = lock_.mutex_.owed_to_others();
    lock_.unlock();
    if (owed) [[unlikely]]
      lock_.mutex_.stand_aside();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Lock& lock_;
};

}  // namespace pullman::ofi
