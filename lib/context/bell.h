// Wakes a thread that sleeps on a descriptor.
//
// Rung many times before it is silenced it makes one system call.
#pragma once

#include <atomic>

namespace pullman {

class Bell {
 public:
  // Throws std::system_error if there is no descriptor.
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // Makes the descriptor readable. Any thread.
  void ring() {
    if (!rung_.exchange(true)) ring_loud();
  }
  // The thread that sleeps makes it unreadable. What is rung from now on is heard.
  void silence();
  int descriptor() const { return descriptor_; }

 private:
  void ring_loud() const;

  const int descriptor_;
  std::atomic<bool> rung_ = false;
};

}  // namespace pullman
