// The common part of completion queues, counters and event queues: makes progress on the endpoints
// that report there, and lets threads sleep without missing anything.
#pragma once

#include <rdma/fi_eq.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "ofi/lock.h"
#include "ofi/waiter.h"

namespace pullman::ofi {

class EndpointProgress;
class WaitSet;

class Waitable {
 public:
  // `set`: the wait set that it belongs to, or null.
  Waitable(Lock& lock, fi_wait_obj kind, WaitSet* set);
  virtual ~Waitable();
  Waitable(const Waitable&) = delete;
  Waitable& operator=(const Waitable&) = delete;

  // Whether a read would return something. Under the lock.
  virtual bool has_news() const = 0;

  // Endpoints that report here. Under the lock.
  void attach(EndpointProgress& endpoint);
  void detach(EndpointProgress& endpoint);
  bool attached() const { return !endpoints_.empty(); }

  // Makes progress on all endpoints. Under the lock.
  void progress();
  // Does the same after a read that took everything: polls less.
  void progress_again();

  // Calls progress(), then returns whether a thread may go to sleep: there is no news, and every
  // NIC will wake it. Under the lock.
  bool prepare_wait();

  // Does what prepare_wait() does, and sleeps for at most that long if there is nothing to do. Not
  // under the lock.
  void nap(std::chrono::milliseconds limit);

  // There is news: wakes the threads that sleep. Under the lock.
  void wake() {
    if (waiter_ != nullptr) waiter_->ring();
  }
  // The news has been read.
  void clear_wake() {
    if (waiter_ != nullptr) waiter_->silence();
  }

  // Counts the poll sets that it is in; it cannot be closed meanwhile. Under the lock.
  void hold() { ++holds_; }
  void release() { --holds_; }
  bool held() const { return holds_ != 0; }

  bool can_wait() const { return waiter_ != nullptr; }
  // FI_GETWAIT and FI_GETWAITOBJ.
  int control(int command, void* argument) const;

  Lock& lock() const { return lock_; }
  Waiter* waiter() const { return waiter_.get(); }

  // Waits until `ready()`, called under the lock, is true; returns false if `timeout_ms` (negative:
  // no limit) passes first. Sleeps between turns.
  template <typename Ready>
  bool wait_until(int timeout_ms, Ready&& ready);

 private:
  // From now on a thread may be asleep at any time. Under the lock.
  void expect_sleepers();
  // Watches the descriptors of endpoints, each once.
  void watch(int descriptor);
  void forget(int descriptor);
  static int nap_ms(std::chrono::steady_clock::time_point end, int timeout_ms);

  Lock& lock_;
  const fi_wait_obj kind_;
  WaitSet* const set_;
  std::shared_ptr<Waiter> waiter_;  // null: no thread may wait for it
  bool expects_sleepers_ = false;
  unsigned holds_ = 0;
  std::vector<EndpointProgress*> endpoints_;
  std::vector<int> watched_;
};

template <typename Ready>
bool Waitable::wait_until(int timeout_ms, Ready&& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    std::optional<Waiter::Sleep> sleep;
    {
      Locked locked(lock_);
      if (ready()) return true;
      const bool may_sleep = prepare_wait();
      if (ready()) return true;
      if (may_sleep && waiter_ != nullptr) sleep.emplace(*waiter_);
    }
    if (timeout_ms >= 0 && std::chrono::steady_clock::now() >= end) return false;
    if (sleep) waiter_->wait(nap_ms(end, timeout_ms));
  }
}

}  // namespace pullman::ofi
