// What a thread sleeps on: descriptors that say when there is something to do, and a bell for those
// who cannot be seen from a descriptor. Does not know what is waited for.
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

  // Of several that watch one descriptor the last forgets it.
  void watch(int descriptor);
  void forget(int descriptor);

  // Any thread. Rings until it is silenced, which nobody can before each of those has woken who
  // slept when it rang. What rings while another thread silences it may be lost: who silences it
  // looks for news then, not before.
  void ring();
  void silence();

  // A thread that is about to sleep, and has seen all that it has to see: what rings from here on
  // wakes it.
  class Sleep {
   public:
    explicit Sleep(Waiter& waiter);
    ~Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;

   private:
    Waiter& waiter_;
    std::uint64_t rung_;  // before it went to sleep
  };

  // At most so long, in milliseconds; negative: no end. Any thread.
  void wait(int timeout_ms) const;

 private:
  int epoll_ = -1;
  int bell_ = -1;
  std::atomic<bool> ringing_ = false;  // saves system calls
  std::atomic<unsigned> sleepers_ = 0;
  std::atomic<unsigned> unaware_ = 0;  // of those, who slept when it rang last
  std::uint64_t rung_ = 0;             // while somebody slept: how often
  std::mutex mutex_;
  std::map<int, unsigned> watchers_;  // how many, by descriptor
};

}  // namespace pullman::ofi
