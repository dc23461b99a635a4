// Moves the packets of a domain's endpoints while their application is elsewhere
// (FI_PROGRESS_AUTO).
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "ofi/lock.h"
#include "ofi/waiter.h"

namespace pullman::ofi {

class Endpoint;

class ProgressThread {
 public:
  explicit ProgressThread(Lock& lock);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // From when its NICs are open until they are closed. Under the lock.
  void add(Endpoint& endpoint);
  void remove(Endpoint& endpoint);

 private:
  void run();

  Lock& lock_;
  Waiter waiter_;
  std::vector<Endpoint*> endpoints_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace pullman::ofi
