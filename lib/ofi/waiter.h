// What a thread sleeps on: descriptors that become readable when there is work, and a bell for
// events that no descriptor shows. Does not know the purpose of the wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace pullman::ofi {

class Waiter {
 public:
  // Throws std::bad_alloc when the system has no descriptors left.
  Waiter();
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Becomes readable when any of the descriptors does, or the bell rings.
  int descriptor() const { return epoll_; }

  // A descriptor that was watched several times must be forgotten as often.
  void watch(int descriptor);
  void forget(int descriptor);

  // Any thread may call these. The bell rings until it is silenced, which has no effect before
  // every thread that slept when it rang has woken. A ring while another thread silences the bell
  // may be lost: so a thread that silences it checks for news afterwards, not before.
  void ring();
  void silence();

  // A thread makes one when it has checked for news and is about to sleep: later rings wake it.
  class Sleep {
   public:
    explicit Sleep(Waiter& waiter);
    ~Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;

   private:
    Waiter& waiter_;
    std::uint64_t rung_;  // Waiter::rung_ before the sleep
  };

  // Waits at most that many milliseconds; negative: without limit. Any thread.
  void wait(int timeout_ms) const;

 private:
  int epoll_ = -1;
  int bell_ = -1;
  std::atomic<bool> ringing_ = false;  // whether the bell rings; saves system calls
  std::atomic<unsigned> sleepers_ = 0;
  std::atomic<unsigned> unaware_ = 0;  // sleepers at the last ring that have not woken yet
  std::uint64_t rung_ = 0;             // rings while a thread slept
  std::mutex mutex_;
  std::map<int, unsigned> watchers_;  // number of watchers, by descriptor
};

}  // namespace pullman::ofi
