// Sleeps in the kernel until a NIC has something to receive or a timer expires.
//
// One descriptor stands for all: an epoll set of the ports' wait descriptors and a timer. Does not
// know what is waited for. The caller must just have found that there is nothing to do
// (nic::Port::wait_fd). Threads: one at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/time.h"
#include "nic/port.h"

namespace pullman {

class Sleeper {
 public:
  // All ports; they outlive the sleeper. If one has no wait descriptor, sleeping is not possible.
  // `others` are further descriptors to wait on, or -1.
  Sleeper(std::vector<nic::Port*> ports, std::vector<int> others)
      : ports_(std::move(ports)), others_(std::move(others)) {}
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Returns a descriptor that is readable when a port is, or at the time set by arm(); -1 if
  // sleeping is not possible. It is created by the first call: a process that only polls has none.
  int descriptor() {
    if (!asked_) make();
    turns_ = 0;
    return watching_ || watch_again() ? all_ : -1;
  }

  // Sets or replaces port number `place`. The port that it replaces has been destroyed.
  void set_port(std::size_t place, nic::Port* port);
  void swap_ports(std::size_t one, std::size_t other) { std::swap(ports_[one], ports_[other]); }

  // A further descriptor to wait on, from now on or no more.
  void add(int descriptor);
  void remove(int descriptor);

  // Counts a turn without sleeping. After many in a row the ports' descriptors are disarmed until
  // descriptor() is called again, which makes receiving packets cheaper.
  void note_turn() {
    if (watching_ && ++turns_ >= kTurnsAwake) unwatch();
  }

  // Sets the timer, in the time of std::chrono::steady_clock; kNever disarms it.
  void arm(Instant when);

  // Sleeps until a port has something, until `until`, or until a signal.
  void sleep(Instant now, Instant until);

 private:
  // Turns without sleeping before the ports are disarmed. Sleeping after that costs two to four
  // system calls for each port.
  static constexpr unsigned kTurnsAwake = 1024;

  void make();
  void close_abortively();
  bool watch_again();
  void unwatch();

  std::vector<nic::Port*> ports_;
  std::vector<int> others_;
  bool asked_ = false;      // descriptor() was called
  bool watching_ = false;   // the ports' descriptors are armed
  unsigned turns_ = 0;      // turns in a row without sleeping
  int all_ = -1;            // the epoll set
  int timer_ = -1;          // a timerfd in the set
  Instant armed_ = kNever;  // when the timer expires
};

}  // namespace pullman
