// Tells that one of several processes has ended.
//
// The kernel has a descriptor for a process (pidfd_open(2)), which becomes readable when that ends.
// A host may run hundreds of processes that talk to each other, and a process may have 1024
// descriptors (RLIMIT_NOFILE), so only the first few processes have one here; the others are polled
// when the caller says so.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "shm/process.h"

namespace pullman::shm {

class ProcessWatch {
  // A process without a descriptor.
  struct Polled {
    void poll() { ended = ended || has_ended(process); }

    ProcessName process;
    bool ended = false;  // as far as is known
  };

 public:
  static constexpr std::size_t kMaxDescriptors = 16;

  explicit ProcessWatch(std::size_t max_descriptors = kMaxDescriptors);
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
    // Returns false if the process is known to have ended; true, too, if it cannot be watched.
    bool runs() const;
    // Polls the process, if it must be polled.
    void poll() const;

   private:
    bool open(const ProcessName& process);

    ProcessWatch* watch_ = nullptr;
    int descriptor_ = -1;
    std::unique_ptr<Polled> polled_;
  };

  // Returns whether one of the watched processes is known to have ended.
  bool any_ended() const;
  // Returns a descriptor that is readable when a process that has one has ended; -1 if there is
  // none.
  int descriptor() const { return all_; }

  // Returns the number of processes that have no descriptor, and must be polled.
  std::size_t polled() const { return polled_.size(); }
  // Polls the next `count` of those, in turn. Four system calls for each.
  void poll_next(std::size_t count);

 private:
  void forget(const Polled& one);

  int all_ = -1;                  // an epoll set of the processes' descriptors
  std::size_t free_descriptors_;  // that may still be opened
  std::vector<Polled*> polled_;   // each belongs to a Watched
  std::size_t next_ = 0;          // the place of the one that is polled next
};

}  // namespace pullman::shm
