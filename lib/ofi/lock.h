// One lock for everything in a domain. A sleeping thread can arrange to be woken when the lock is
// next taken.
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
  // Takes the lock and withdraws ring_when_taken(), for a thread that may have called it.
  void lock_awake() {
    mutex_.lock();
    sleeper_ = nullptr;
  }
  void unlock() { mutex_.unlock(); }
  // Rings `sleeper` once, when the lock is next taken. Under the lock.
  void ring_when_taken(Waiter& sleeper) { sleeper_ = &sleeper; }

 private:
  friend class FairLocked;
  void wake_sleeper();

  AdaptiveMutex mutex_;
  Waiter* sleeper_ = nullptr;
};

using Locked = std::lock_guard<Lock>;

// A lock for calls that applications make in a loop: a polling thread stands aside for others that
// have waited for their share.
class FairLocked {
 public:
  explicit FairLocked(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~FairLocked() {
    const bool owed = lock_.mutex_.owed_to_others();
    lock_.unlock();
    if (owed) [[unlikely]]
      lock_.mutex_.stand_aside();
  }
  FairLocked(const FairLocked&) = delete;
  FairLocked& operator=(const FairLocked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace pullman::ofi
