// A mutex whose holders move packets for some microseconds, again and again. Taking it when it is
// free costs one atomic exchange, giving it up a store and a look (std::mutex: two exchanges). Who
// finds it taken spins for as long as a holder that runs may need, then sleeps: on a machine with
// fewer processors than threads the holder is one that waits for a processor, and who spins or
// yields keeps it. Who takes it turn after turn must let others in between them: a mutex that is
// given up and taken again at once is taken by who gave it up.
#pragma once

#include <atomic>
#include <cstdint>

namespace pullman {

class AdaptiveMutex {
 public:
  // Turns: what a turn has touched is dear to whose processor comes next.
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

  // By who holds it, once a turn: whether others waited for enough turns to be let in. Who asked
  // gives it up then and stands aside.
  bool owed_to_others() {
    return waiting_.load(std::memory_order_relaxed) != 0 && ++turns_wanted_ % kPatience == 0;
  }
  // Without holding it: returns when somebody who waited has had it, nobody waits, or that takes
  // too long.
  void stand_aside();

 private:
  void wait();
  void wake();
  // Spins; false if it is still held then.
  bool take_by_spinning();

  std::atomic<bool> held_ = false;
  std::atomic<std::uint32_t> waiting_ = 0;   // who spins or sleeps
  std::atomic<std::uint32_t> sleepers_ = 0;  // of them, who sleeps or is about to
  std::atomic<std::uint32_t> woken_ = 0;     // how often somebody was: what sleepers sleep on
  std::atomic<std::uint32_t> entered_ = 0;   // how often somebody got in who had waited
  std::uint32_t turns_wanted_ = 0;           // of holders, while somebody waited
};

}  // namespace pullman
