// Tells that one of several processes has ended, by one descriptor that can be waited for.
//
// The kernel has a descriptor for a process (pidfd_open(2)), which becomes readable when that ends.
// Threads: one at a time.
#pragma once

#include "shm/process.h"

namespace pullman::shm {

class ProcessWatch {
 public:
  ProcessWatch();
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Watches a process for as long as the result lives, which must not outlive the watch.
  class Watched {
   public:
    Watched() = default;
    Watched(ProcessWatch& watch, const ProcessName& process);
    ~Watched();
    Watched(Watched&& other) noexcept;
    Watched& operator=(Watched&& other) noexcept;
    // Returns false if the process has ended; true, too, if the kernel does not let it be watched.
    bool runs() const;

   private:
    ProcessWatch* watch_ = nullptr;
    int process_ = -1;
  };

  // Returns whether one of the watched processes has ended.
  bool any_ended() const;
  // Returns a descriptor that is readable while any_ended(); -1 if there is none.
  int descriptor() const { return all_; }

 private:
  int all_ = -1;  // an epoll set of the processes' descriptors
};

}  // namespace pullman::shm
