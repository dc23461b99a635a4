// One lock for everything of a domain. Taking it when it is free costs one atomic exchange, giving
// it up a store (std::mutex: two exchanges, or what is as dear, and a call of each). Who finds it
// taken spins, then yields, then naps: holders move packets for some microseconds.
#pragma once

#include <atomic>
#include <mutex>

namespace pullman::ofi {

class Waiter;

class Lock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
    if (sleeper_ != nullptr) [[unlikely]]
      wake_sleeper();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

  // Who sleeps until the lock is taken next: it is rung once. Under the lock.
  void ring_when_taken(Waiter& sleeper) { sleeper_ = &sleeper; }

 private:
  // Until it looks free.
  void wait() const;
  void wake_sleeper();

  std::atomic<bool> held_ = false;
  Waiter* sleeper_ = nullptr;
};

using Locked = std::lock_guard<Lock>;

}  // namespace pullman::ofi
