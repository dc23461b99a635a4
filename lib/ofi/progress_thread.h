// Makes progress on a domain's endpoints while the application does not: ACKs, retransmissions and
// grants are due at their time, not at its next call. An endpoint that the application polls or
// waits for is left alone. Does not know what endpoints do.
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
  // How long an application may make no progress before the thread takes over. It checks as often.
  using Patience = std::chrono::milliseconds;

  ProgressThread(Lock& lock, Patience patience) : lock_(lock), patience_(patience) {}
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // From when the NICs of the endpoint are open until they are closed. Under the lock. Throws
  // std::bad_alloc.
  void add(EndpointProgress& endpoint);
  void remove(EndpointProgress& endpoint);

 private:
  struct ManagedEndpoint {
    EndpointProgress* endpoint = nullptr;
    std::uint64_t turns_seen = 0;  // of the application
    int unanswered_checks = 0;     // it waits, there is work, and it made no progress
    bool unattended = false;       // at the last check
    bool taken_over = false;       // the thread makes progress, and waits for the descriptor
  };

  void start();
  void run();
  // Makes progress where it is due; returns how long to sleep then.
  std::chrono::milliseconds round();
  // Whether any endpoint is, or was, unattended. Without the lock, which a polling application
  // holds nearly always.
  bool check_all();
  bool is_unattended(ManagedEndpoint& managed);
  // True if there was work, and may be more.
  bool step_in();
  void take_over(ManagedEndpoint& managed);
  void hand_back(ManagedEndpoint& managed);

  Lock& lock_;
  const Patience patience_;
  Waiter waiter_;
  std::mutex managed_endpoints_mutex_;  // of the list, for threads without lock_; taken after it
  std::vector<ManagedEndpoint> managed_endpoints_;
  bool idle_ = false;    // neither thread nor application made progress in this round
  int idle_rounds_ = 0;  // in a row
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // started with the first endpoint
};

}  // namespace pullman::ofi
