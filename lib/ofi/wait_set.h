// A wait set: several queues and counters of a fabric that one thread waits for together.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <mutex>
#include <vector>

#include "ofi/waitable.h"

namespace pullman::ofi {

class WaitSet : public fid_wait {
 public:
  static int open(fid_fabric* fabric, fi_wait_attr* attributes, fid_wait** out);

  // Converts an application's handle; null gives null.
  static WaitSet* from(fid_wait* handle) { return static_cast<WaitSet*>(handle); }

  void add(Waitable& member);
  void remove(Waitable& member);
  const std::shared_ptr<Waiter>& waiter() const { return waiter_; }
  // Whether a thread may sleep on its descriptor.
  bool prepare_wait() {
    bool asleep = true;
    return !look(asleep) && asleep;
  }

 private:
  WaitSet();
  int wait(int timeout_ms);
  // Returns whether any member has news; if none has, `asleep` tells whether a thread may sleep on
  // all.
  bool look(bool& asleep);

  std::shared_ptr<Waiter> waiter_;
  std::mutex mutex_;  // guards `members_`
  std::vector<Waitable*> members_;
};

}  // namespace pullman::ofi
