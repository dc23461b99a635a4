// Sleeping in the kernel until a NIC has something, or a moment has come.
//
// One descriptor stands for all: an epoll set of the ports' wait descriptors and a timer. Does not
// know what is waited for; whoever sleeps has just found that there is nothing to do
// (nic::Port::wait_fd). Threads: one at a time.
#pragma once

#include <utility>
#include <vector>

#include "base/time.h"
#include "nic/port.h"

namespace pullman {

class Sleeper {
 public:
  // All ports, which outlive what is done here. If one has no wait descriptor nobody can sleep.
  // `news`: a descriptor that is readable when there is other news; -1: there is none.
  Sleeper(std::vector<nic::Port*> ports, int news) : ports_(std::move(ports)), news_(news) {}
  ~Sleeper();
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  // Readable when a port is, or once the time is there for which arm() was called; -1 if nobody can
  // sleep. Made when first asked for: a process that only polls has none.
  int descriptor() {
    if (!asked_) make();
    turns_ = 0;
    return watching_ || watch_again() ? all_ : -1;
  }

  // Port number `place` is this one from now on; the one that was, if any, is no more.
  void set_port(std::size_t place, nic::Port* port);
  void swap_ports(std::size_t one, std::size_t other) { std::swap(ports_[one], ports_[other]); }

  // A turn of who polls. After many in a row nobody sleeps any more, and the ports' packets need
  // wake nobody until descriptor() is asked for again.
  void note_turn() {
    if (watching_ && ++turns_ >= kTurnsAwake) unwatch();
  }

  // The clock is std::chrono::steady_clock's; kNever: no time at all.
  void arm(Instant when);

  // Until a port has something, `until` at the latest, or a signal.
  void sleep(Instant now, Instant until);

 private:
  // Who sleeps more seldom than that pays two to four system calls a port for it.
  static constexpr unsigned kTurnsAwake = 1024;

  void make();
  void close_abortively();
  bool watch_again();
  void unwatch();

  std::vector<nic::Port*> ports_;
  int news_;
  bool asked_ = false;      // for a descriptor
  bool watching_ = false;   // the ports say when they have something
  unsigned turns_ = 0;      // in a row without sleeping
  int all_ = -1;            // epoll
  int timer_ = -1;          // in it
  Instant armed_ = kNever;  // for when
};

}  // namespace pullman
