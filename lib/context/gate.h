// The one lock of a context that many threads may call; of one that only one thread calls, nothing.
//
// Who waits for something holds it from turn to turn and lets others in between them. Knows nothing
// of what it guards.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace pullman {

class Gate {
 public:
  explicit Gate(bool many) : many_(many) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Inside, as long as it lives.
  class Hold {
   public:
    explicit Hold(Gate& gate) : gate_(gate.many_ ? &gate : nullptr) {
      if (gate_ != nullptr) gate_->lock();
    }
    ~Hold() {
      if (gate_ != nullptr) gate_->mutex_.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Lets in whoever waits, one of them at least, unless that takes too long.
    void let_others_in() {
      if (gate_ != nullptr && gate_->waiting_.load(std::memory_order_relaxed) != 0) gate_->yield();
    }
    // Calls `outside`, without the lock if there is one.
    template <typename Outside>
    void leave_for(Outside outside) {
      if (gate_ != nullptr) gate_->mutex_.unlock();
      outside();
      if (gate_ != nullptr) gate_->lock();
    }

   private:
    Gate* gate_;  // null: there is no lock
  };
  bool many() const { return many_; }

 private:
  // A lock that is given up and taken again at once is taken by who gave it up.
  static constexpr int kMostYields = 1000;

  void lock() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    entered_.fetch_add(1, std::memory_order_relaxed);
  }
  void yield() {
    const std::uint64_t entered = entered_.load(std::memory_order_relaxed);
    mutex_.unlock();
    for (int i = 0; i < kMostYields && waiting_.load(std::memory_order_relaxed) != 0 &&
                    entered_.load(std::memory_order_relaxed) == entered;
         ++i) {
      std::this_thread::yield();
    }
    lock();
  }

  const bool many_;
  std::mutex mutex_;
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<std::uint64_t> entered_{0};
};

}  // namespace pullman
