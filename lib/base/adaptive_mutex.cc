#include "base/adaptive_mutex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#include <thread>

namespace pullman {
namespace {

constexpr int kSpins = 100;     // some microseconds: a holder that is running is done by then
constexpr int kMaxYields = 64;  // in stand_aside(); some 20 us on an idle processor

// unlock() may load `sleepers_` before its store of `held_` is visible, and then wakes nobody. That
// is rare, and bounding the sleep is cheaper than a fence in each unlock().
constexpr long kLongestSleepNs = 200'000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// futex(2) needs the address of a 32-bit word, which std::atomic<std::uint32_t> is.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value, long ns) {
  const timespec longest{.tv_sec = 0, .tv_nsec = ns};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &longest, nullptr, 0);
}

void wake_one(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

bool AdaptiveMutex::take_by_spinning() {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (!held_.load(std::memory_order_relaxed) &&
        !held_.exchange(true, std::memory_order_acquire)) {
      return true;
    }
    pause();
  }
  return false;
}

void AdaptiveMutex::wait() {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  while (!take_by_spinning()) {
    const std::uint32_t woken = woken_.load(std::memory_order_acquire);
    sleepers_.fetch_add(1);
    if (held_.load()) sleep_while(woken_, woken, kLongestSleepNs);
    sleepers_.fetch_sub(1);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  entered_.fetch_add(1, std::memory_order_relaxed);
}

void AdaptiveMutex::wake() {
  woken_.fetch_add(1, std::memory_order_release);
  wake_one(woken_);
}

void AdaptiveMutex::stand_aside() {
  const std::uint32_t entered = entered_.load(std::memory_order_relaxed);
  for (int i = 0; i < kMaxYields && waiting_.load(std::memory_order_relaxed) != 0 &&
                  entered_.load(std::memory_order_relaxed) == entered;
       ++i) {
    std::this_thread::yield();
  }
}

}  // namespace pullman
