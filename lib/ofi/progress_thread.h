// Moves the packets of a domain's endpoints in the application's place while it is elsewhere: ACKs,
// retransmissions and grants are due at their time, not at its next call. An endpoint that the
// application polls, or waits for, is left alone. Knows endpoints, and nothing of what they do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "ofi/lock.h"
#include "ofi/waiter.h"

namespace pullman::ofi {

class EndpointProgress;

class ProgressThread {
 public:
  // How long an application has to be silent before it counts as gone. The thread looks as often.
  using Patience = std::chrono::milliseconds;

  ProgressThread(Lock& lock, Patience patience) : lock_(lock), patience_(patience) {}
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // From when its NICs are open until they are closed. Under the lock. Throws std::bad_alloc.
  void add(EndpointProgress& endpoint);
  void remove(EndpointProgress& endpoint);

 private:
  struct ManagedEndpoint {
    EndpointProgress* endpoint = nullptr;
    std::uint64_t turns_seen = 0;  // of the application
    int unanswered_checks = 0;     // it waits, there is something to do, and it did not come
    bool unattended = false;       // as we found it the last time
    bool taken_over = false;       // we move its packets, and wait for its descriptor
  };

  void start();
  void run();
  // Looks after all; returns how long to sleep then.
  std::chrono::milliseconds round();
  // Whether any is, or was, unattended. Takes no lock that a polling application has nearly always.
  bool check_all();
  bool is_unattended(ManagedEndpoint& managed);
  // True if there was something to do, and may be more.
  bool step_in();
  void take_over(ManagedEndpoint& managed);
  void hand_back(ManagedEndpoint& managed);

  Lock& lock_;
  const Patience patience_;
  Waiter waiter_;
  std::mutex managed_endpoints_mutex_;  // of the list, for who has not lock_; taken after it
  std::vector<ManagedEndpoint> managed_endpoints_;
  bool idle_ = false;    // nothing was done in this round, by us or by the application
  int idle_rounds_ = 0;  // in a row
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // started with the first endpoint
};

}  // namespace pullman::ofi
