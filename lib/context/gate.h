// The lock of a context that many threads may call. For a context with a single thread it does
// nothing.
//
// A call that waits holds the lock from turn to turn and lets others in between turns. A thread may
// sleep until somebody has called: who holds the lock then rings its bell when he lets go of it.
// Does not know what it guards.
#pragma once

#include "base/adaptive_mutex.h"
#include "context/bell.h"

namespace pullman {

class Gate {
 public:
  explicit Gate(bool many) : many_(many) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Holds the lock as long as it lives.
  class Hold {
   public:
    explicit Hold(Gate& gate) : gate_(gate.many_ ? &gate : nullptr) {
      if (gate_ != nullptr) [[unlikely]]
        gate_->mutex_.lock();
    }
    ~Hold() {
      if (gate_ != nullptr) [[unlikely]]
        gate_->leave();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    // Called between two turns. Lets in a thread that has waited for some turns, unless that takes
    // too long.
    void let_others_in() {
      if (gate_ != nullptr && gate_->mutex_.owed_to_others()) [[unlikely]] {
        leave_for([this] { gate_->mutex_.stand_aside(); });
      }
    }
    // Calls `outside` without the lock.
    template <typename Outside>
    void leave_for(Outside outside) {
      if (gate_ != nullptr) gate_->mutex_.unlock();
      outside();
      if (gate_ != nullptr) gate_->mutex_.lock();
    }

    // Calls `sleep` without the lock, and has the bell rung by each call that ends meanwhile.
    template <typename Sleep>
    void leave_until_called(Bell& bell, Sleep sleep) {
      gate_->bell_ = &bell;
      leave_for(sleep);
      gate_->bell_ = nullptr;
    }

   private:
    Gate* gate_;  // null: there is no lock
  };
  bool many() const { return many_; }

 private:
  // A call ends. Not inlined: contexts with a single thread do not need it.
  [[gnu::noinline]] void leave() {
    if (bell_ != nullptr) [[unlikely]]
      bell_->ring();
    mutex_.unlock();
  }

  const bool many_;
  AdaptiveMutex mutex_;
  Bell* bell_ = nullptr;  // of a thread that sleeps
};

}  // namespace pullman
