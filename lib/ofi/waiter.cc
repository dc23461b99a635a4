#include "ofi/waiter.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <new>

namespace pullman::ofi {

Waiter::Waiter()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (epoll_ < 0 || bell_ < 0) {
    if (epoll_ >= 0) close(epoll_);
    if (bell_ >= 0) close(bell_);
    throw std::bad_alloc();
  }
  watch(bell_);
}

Waiter::~Waiter() {
  close(bell_);
  close(epoll_);
}

void Waiter::watch(int descriptor) {
  if (descriptor < 0) return;
  const std::lock_guard locked(mutex_);
  if (++watchers_[descriptor] > 1) return;
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event);
}

void Waiter::forget(int descriptor) {
  const std::lock_guard locked(mutex_);
  const auto found = watchers_.find(descriptor);
  if (found == watchers_.end() || --found->second > 0) return;
  watchers_.erase(found);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

Waiter::Sleep::Sleep(Waiter& waiter) : waiter_(waiter) {
  const std::lock_guard locked(waiter_.mutex_);
  ++waiter_.sleepers_;
  rung_ = waiter_.rung_;
}

Waiter::Sleep::~Sleep() {
  const std::lock_guard locked(waiter_.mutex_);
  --waiter_.sleepers_;
  if (rung_ != waiter_.rung_) --waiter_.unaware_;
}

void Waiter::ring() {
  std::unique_lock<std::mutex> locked;
  if (sleepers_.load() != 0) {
    locked = std::unique_lock(mutex_);
    ++rung_;
    unaware_.store(sleepers_.load());
  }
  if (ringing_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(bell_, &one, sizeof one);
}

void Waiter::silence() {
  if (!ringing_.load(std::memory_order_relaxed)) return;
  const std::lock_guard locked(mutex_);  // a ring for a sleeping thread must not be lost
  if (unaware_.load() != 0) return;
  std::uint64_t count = 0;
  // Nothing to read yet: another thread is about to ring. Clearing `ringing_` would leave the bell
  // ringing for ever.
  if (read(bell_, &count, sizeof count) < 0) return;
  ringing_.store(false);
}

void Waiter::wait(int timeout_ms) const {
  pollfd one{.fd = epoll_, .events = POLLIN, .revents = 0};
  poll(&one, 1, timeout_ms);
}

}  // namespace pullman::ofi
