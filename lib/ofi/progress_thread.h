// Makes progress on a domain's endpoints while the application does not: ACKs, retransmissions and
// GRANTs are sent when they are due, not at the application's next call. Leaves an endpoint alone
// that the application polls or waits for. Does not know what endpoints do.
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
  // How long an application may make no progress before the thread takes over; also the period of
  // its checks.
  using Patience = std::chrono::milliseconds;

  ProgressThread(Lock& lock, Patience patience) : lock_(lock), patience_(patience) {}
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // An endpoint is added when its NICs are open, and removed before they are closed. Under the
  // lock. add() throws std::bad_alloc.
  void add(EndpointProgress& endpoint);
  void remove(EndpointProgress& endpoint);

 private:
  struct ManagedEndpoint {
    EndpointProgress* endpoint = nullptr;
    std::uint64_t turns_seen = 0;  // the application's turns at the last check
    int unanswered_checks = 0;     // checks that found it waiting, with work and no progress
    bool unattended = false;       // at the last check
    bool taken_over = false;       // the thread makes progress and waits for the descriptor
  };

  void start();
  void run();
  // Makes progress where it is due; returns how long to sleep before the next round.
  std::chrono::milliseconds round();
  // Returns whether any endpoint is, or was, unattended. Does not take the lock, which a polling
  // application holds nearly always.
  bool check_all();
  bool is_unattended(ManagedEndpoint& managed);
  // Returns true if there was work, and there may be more.
  bool step_in();
  void take_over(ManagedEndpoint& managed);
  void hand_back(ManagedEndpoint& managed);

  Lock& lock_;
  const Patience patience_;
  Waiter waiter_;
  std::mutex managed_endpoints_mutex_;  // for the list, in threads without lock_; taken after lock_
  std::vector<ManagedEndpoint> managed_endpoints_;
  bool idle_ = false;    // neither thread nor application made progress in this round
  int idle_rounds_ = 0;  // consecutive ones
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // started with the first endpoint
};

}  // namespace pullman::ofi
