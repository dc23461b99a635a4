// What the application does with an endpoint: how often it makes progress, and whether it waits for
// the endpoint's descriptor instead. The progress thread reads this without the domain's lock and
// takes over from an application that does neither.
#pragma once

#include <atomic>
#include <cstdint>

namespace pullman::ofi {

class Activity {
 public:
  // The application makes progress; returns how often it has. Under the lock: there is one writer
  // at a time, so the increment needs no atomic read-modify-write.
  std::uint64_t note_progress() {
    const std::uint64_t turns = this->turns() + 1;
    turns_.store(turns, std::memory_order_relaxed);
    note_call();
    return turns;
  }
  // The application did something that may make packets due before what it waits for.
  void note_call() { waiting_.store(false, std::memory_order_relaxed); }
  // The application may go to sleep on the descriptor.
  void set_waiting(bool waiting) { waiting_.store(waiting, std::memory_order_relaxed); }

  // How often the application has made progress.
  std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  bool is_waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> turns_ = 0;
  std::atomic<bool> waiting_ = false;
};

}  // namespace pullman::ofi
