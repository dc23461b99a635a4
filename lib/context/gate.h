// The lock of a context that many threads may call. For a context with a single thread it does
// nothing. In a child of fork() it lets nobody in.
//
// A call that waits holds the lock from turn to turn and lets others in between turns. A thread may
// sleep until somebody has called: who holds the lock then rings its bell when he lets go of it.
// Does not know what it guards.
#pragma once

#include <cstdint>

#include "base/adaptive_mutex.h"
#include "base/fork_mark.h"
#include "context/bell.h"

namespace pullman {

class Gate {
 public:
  explicit Gate(bool many) : flags_(many ? kMany : 0) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Holds the lock as long as it lives.
  class Hold {
   public:
    explicit Hold(Gate& gate) : gate_(gate.flags_ != 0 ? &gate : nullptr) {
      if (gate_ != nullptr) [[unlikely]]
        gate_->enter();
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
      const Leave left(gate_);
      outside();
    }

    // Calls `sleep` without the lock, and has the bell rung by each call that ends meanwhile.
    template <typename Sleep>
    void leave_until_called(Bell& bell, Sleep sleep) {
      gate_->bell_ = &bell;
      leave_for(sleep);
      gate_->bell_ = nullptr;
    }

   private:
    // Is without the lock as long as it lives, so that an exception finds it locked again.
    class Leave {
     public:
      explicit Leave(Gate* gate) : gate_(gate) {
        if (gate_ != nullptr) gate_->mutex_.unlock();
      }
      ~Leave() {
        if (gate_ != nullptr) gate_->mutex_.lock();
      }
      Leave(const Leave&) = delete;
      Leave& operator=(const Leave&) = delete;

     private:
      Gate* gate_;
    };

    Gate* gate_;  // null: there is no lock
  };
  // How often the program has called, under the lock. Who calls for the library takes that off.
  std::uint64_t calls() const { return calls_; }
  void set_calls(std::uint64_t calls) { calls_ = calls; }

  bool many() const { return (flags_ & kMany) != 0; }
  // Returns true in a child of the process that made it.
  bool is_inherited() const { return (flags_ & kInherited) != 0; }
  // Ends a child that uses what is its parent's.
  [[noreturn, gnu::cold]] static void refuse();

 private:
  static constexpr std::uint8_t kMany = 1;
  static constexpr std::uint8_t kInherited = 2;

  void enter() {
    if (is_inherited()) [[unlikely]]
      refuse();
    mutex_.lock();
    ++calls_;
  }
  // A call ends. Not inlined: contexts with a single thread do not need it.
  [[gnu::noinline]] void leave() {
    if (bell_ != nullptr) [[unlikely]]
      bell_->ring();
    mutex_.unlock();
  }

  std::uint8_t flags_;
  ForkMark mark_{flags_, kInherited};
  AdaptiveMutex mutex_;
  std::uint64_t calls_ = 0;
  Bell* bell_ = nullptr;  // of a thread that sleeps
};

}  // namespace pullman
