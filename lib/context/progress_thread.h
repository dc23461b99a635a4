// Moves the packets of a context while its program does not (Config::progress).
//
// The program attends to the context if it has made a turn since the thread looked last, or waits
// in a call. Then the thread naps, and looks again; beside a call that waits for long it sleeps
// until that ends. Else it makes turns itself, and sleeps in the kernel when there is nothing to
// do, until a packet comes, a timer is due, or the program calls. Does not know what a turn is.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "base/time.h"
#include "context/bell.h"
#include "context/gate.h"

namespace pullman {

// What the thread asks of its context, under the lock.
class Attended {
 public:
  virtual ~Attended() = default;

  // Makes a turn. Returns a descriptor that is readable once there is something to do, or how else
  // to go on.
  static constexpr int kMoreToDo = -1;
  static constexpr int kNothingWakes = -2;  // no NIC can
  virtual int make_turn() = 0;
  // Calls what is due after a turn, without the lock.
  virtual void call_back(Gate::Hold& held) = 0;
  // The thread has watched for packets until then.
  virtual void note_sleep(Instant until) = 0;
};

class ProgressThread {
 public:
  ProgressThread(Gate& gate, Attended& context) : gate_(gate), context_(context) {}
  ~ProgressThread() { stop(); }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Starts the thread, in which `begin` is called first. Throws std::system_error.
  void start(std::function<void()> begin);
  // Returns when it has ended, or will end soon if the thread itself calls. Without the lock.
  void stop();

  // --- by the program's calls, under the lock

  void note_turn() {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // When the program was last seen to call, or was called back; min(): not since the thread runs.
  Instant attended_at() const { return attended_at_.load(std::memory_order_relaxed); }
  void begin_wait() { waits_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waits_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  void run();
  bool is_attended();
  // Behind the lock that the thread has just taken: sees calls that make no turns.
  void note_calls();
  void nap();
  void sleep_beside_wait();
  void tend();

  Gate& gate_;
  Attended& context_;
  Bell bell_;
  std::atomic<std::uint64_t> turns_ = 0;
  std::atomic<std::uint32_t> waits_ = 0;  // calls that wait now
  std::atomic<bool> stops_ = false;
  std::atomic<Instant> attended_at_ = Instant::min();
  std::uint64_t turns_seen_ = 0;
  std::uint64_t calls_seen_ = 0;
  unsigned naps_beside_wait_ = 0;     // in a row
  std::chrono::microseconds nap_{0};  // the next one
  std::mutex stopping_;
  std::thread thread_;
  std::atomic<std::thread::id> id_{};  // its own, once it runs
};

}  // namespace pullman
