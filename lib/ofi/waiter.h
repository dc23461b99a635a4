// What a thread sleeps on: descriptors that say when there is something to do, and a bell for those
// who cannot be seen from a descriptor. Does not know what is waited for.
#pragma once

#include <atomic>
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

  // Any thread. Rings until it is silenced. What rings while another thread silences it may be
  // lost: who silences it looks for news then, not before.
  void ring();
  void silence();

  // At most so long, in milliseconds; negative: no end. Any thread.
  void wait(int timeout_ms) const;

 private:
  int epoll_ = -1;
  int bell_ = -1;
  std::atomic<bool> ringing_ = false;  // saves system calls
  std::mutex mutex_;
  std::map<int, unsigned> watchers_;  // how many, by descriptor
};

}  // namespace pullman::ofi
