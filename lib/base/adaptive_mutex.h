// A mutex for holders that move packets for some microseconds, again and again. An uncontended
// lock() costs one atomic exchange, unlock() a store and a load (std::mutex: two exchanges). A
// thread that finds the mutex held spins for as long as a running holder may need, then sleeps: if
// threads outnumber processors, the holder may be waiting for a processor, which a thread that
// spins or yields would keep. A thread that locks it turn after turn must let others in between
// turns, since a mutex that is unlocked and locked at once goes to the same thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace pullman {

class AdaptiveMutex {
 public:
  // Turns of the holder before it lets others in. Each change of threads is expensive, since the
  // next processor has to fetch the cache lines that the turn has touched.
  static constexpr std::uint32_t kPatience = 16;

  AdaptiveMutex() = default;
  AdaptiveMutex(const AdaptiveMutex&) = delete;
  AdaptiveMutex& operator=(const AdaptiveMutex&) = delete;

  void lock() {
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() {
    held_.store(false, std::memory_order_release);
    if (sleepers_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

  // Called by the holder once a turn. Returns true if others have waited for kPatience turns; the
  // holder then unlocks and calls stand_aside().
  bool owed_to_others() {
    return waiting_.load(std::memory_order_relaxed) != 0 && ++turns_wanted_ % kPatience == 0;
  }
  // Called without holding the mutex. Returns when a waiting thread has got it, when no thread
  // waits, or after kMaxYields yields.
  void stand_aside();

 private:
  void wait();
  void wake();
  // Spins; returns false if the mutex is still held after that.
  bool take_by_spinning();

  std::atomic<bool> held_ = false;
  std::atomic<std::uint32_t> waiting_ = 0;   // threads that spin or sleep
  std::atomic<std::uint32_t> sleepers_ = 0;  // those of them that sleep or are about to
  std::atomic<std::uint32_t> woken_ = 0;     // the futex word: counts wake-ups
  std::atomic<std::uint32_t> entered_ = 0;   // counts locks taken after waiting
  std::uint32_t turns_wanted_ = 0;           // turns of holders while a thread waited
};

}  // namespace pullman
