#include "ofi/progress_thread.h"

#include <algorithm>
#include <new>
#include <system_error>

#include "base/background_thread.h"
#include "ofi/endpoint/progress.h"

namespace pullman::ofi {
namespace {

using std::chrono::milliseconds;

// A waiting application is woken by the same descriptor as this thread, and may need a moment.
constexpr int kMaxUnanswered = 2;

// While nothing happens the sleeps become longer, up to 16 times the patience: 64 ms. A call of the
// application during a long one wakes the thread.
constexpr int kMaxDoublings = 4;

}  // namespace

ProgressThread::~ProgressThread() {
  if (!thread_.joinable()) return;
  stop_ = true;
  waiter_.ring();
  thread_.join();
}

void ProgressThread::add(EndpointProgress& endpoint) {
  if (!thread_.joinable()) start();
  const std::lock_guard locked(managed_endpoints_mutex_);
  managed_endpoints_.push_back({.endpoint = &endpoint});
}

void ProgressThread::start() {
  try {
    thread_ = start_background_thread("pullman-fi", [this] { run(); });
  } catch (const std::system_error&) {
    throw std::bad_alloc();
  }
}

void ProgressThread::remove(EndpointProgress& endpoint) {
  const std::lock_guard locked(managed_endpoints_mutex_);
  std::erase_if(managed_endpoints_, [&](ManagedEndpoint& managed) {
    if (managed.endpoint != &endpoint) return false;
    hand_back(managed);
    return true;
  });
}

// A ring while the bell is being silenced is lost, so work is checked for afterwards.
void ProgressThread::run() {
  for (;;) {
    waiter_.silence();
    if (stop_) return;
    const auto nap = round();
    if (nap == milliseconds(0)) {
      std::this_thread::yield();  // the application may want the lock
    } else {
      waiter_.wait(static_cast<int>(nap.count()));
    }
  }
}

milliseconds ProgressThread::round() {
  idle_ = true;
  if (check_all() && step_in()) return milliseconds(0);
  idle_rounds_ = idle_ ? std::min(idle_rounds_ + 1, kMaxDoublings) : 0;
  if (idle_rounds_ != 0) {
    lock_.lock_awake();
    const Locked locked(lock_, std::adopt_lock);
    lock_.ring_when_taken(waiter_);
  }
  return patience_ * (1 << idle_rounds_);
}

bool ProgressThread::check_all() {
  const std::lock_guard locked(managed_endpoints_mutex_);
  bool any = false;
  for (ManagedEndpoint& managed : managed_endpoints_) {
    managed.unattended = is_unattended(managed);
    any = any || managed.unattended || managed.taken_over;
  }
  return any;
}

bool ProgressThread::is_unattended(ManagedEndpoint& managed) {
  const std::uint64_t turns = managed.endpoint->activity().turns();
  if (turns != managed.turns_seen) {
    managed.turns_seen = turns;
    managed.unanswered_checks = 0;
    idle_ = false;
    return false;
  }
  if (!managed.endpoint->activity().is_waiting()) return true;
  managed.unanswered_checks = managed.endpoint->has_work() ? managed.unanswered_checks + 1 : 0;
  return managed.unanswered_checks >= kMaxUnanswered;
}

bool ProgressThread::step_in() {
  lock_.lock_awake();
  const Locked locked(lock_, std::adopt_lock);
  bool busy = false;
  for (ManagedEndpoint& managed : managed_endpoints_) {
    if (!managed.unattended) {
      hand_back(managed);
      continue;
    }
    take_over(managed);
    if (managed.endpoint->step_in()) continue;
    idle_ = false;
    busy = busy || managed.endpoint->wait_descriptor() >= 0;
  }
  return busy;
}

void ProgressThread::take_over(ManagedEndpoint& managed) {
  if (managed.taken_over) return;
  managed.taken_over = true;
  waiter_.watch(managed.endpoint->wait_descriptor());
}

void ProgressThread::hand_back(ManagedEndpoint& managed) {
  if (!managed.taken_over) return;
  managed.taken_over = false;
  waiter_.forget(managed.endpoint->wait_descriptor());
}

}  // namespace pullman::ofi
