#include "ofi/lock.h"

#include <chrono>
#include <thread>
#include <utility>

#include "ofi/waiter.h"

namespace pullman::ofi {
namespace {

constexpr int kSpins = 100;  // some microseconds: a holder that runs is done by then
constexpr int kYields = 100;
constexpr std::chrono::microseconds kNap(50);  // the holder is in the kernel, or closes

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

void Lock::wait() const {
  for (int turn = 0; held_.load(std::memory_order_relaxed); ++turn) {
    if (turn < kSpins) {
      pause();
    } else if (turn < kSpins + kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

void Lock::wake_sleeper() {
  std::exchange(sleeper_, nullptr)->ring();
}

}  // namespace pullman::ofi
