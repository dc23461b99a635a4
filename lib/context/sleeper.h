// Sleeping in the kernel until a NIC has something, or a moment has come.
//
// One descriptor stands for all: an epoll set of the ports' wait descriptors and a timer. Does not
// know what is waited for; whoever sleeps has just found that there is nothing to do
// (nic::Port::wait_fd). Threads: one at a time.
#pragma once

#include <span>

#include "base/time.h"

namespace pullman {

class Sleeper {
 public:
  // The wait descriptors of all ports: borrowed, and to be closed after this. If one has none (-1)
  // nobody can sleep.
  explicit Sleeper(std::span<const int> descriptors);
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  bool possible() const { return all_ >= 0; }

  // Readable when a port is, or once the time is there for which arm() was called; -1 if nobody can
  // sleep.
  int descriptor() const { return all_; }

  // The clock is std::chrono::steady_clock's; kNever: no time at all.
  void arm(Instant when);

  // Until a port has something, `until` at the latest, or a signal.
  void sleep(Instant now, Instant until);

 private:
  void give_up();

  int all_ = -1;            // epoll
  int timer_ = -1;          // in it
  Instant armed_ = kNever;  // for when
};

}  // namespace pullman
