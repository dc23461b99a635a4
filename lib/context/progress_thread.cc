#include "context/progress_thread.h"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/background_thread.h"
#include "context/clock.h"

namespace pullman {
namespace {

// A packet that comes just after the program's last turn waits for a nap. A nap costs a processor
// 30 us on some virtual machines, so they grow as long as the program goes on.
constexpr std::chrono::microseconds kFirstNap(60);
constexpr std::chrono::microseconds kLongestNap(1000);
// Naps beside one call that waits, after which the thread sleeps until it ends.
constexpr unsigned kNapsBesideWait = 8;

}  // namespace

void ProgressThread::start(std::function<void()> begin) {
  thread_ = start_background_thread("pullman", [this, begin = std::move(begin)] {
    begin();
    run();
  });
}

void ProgressThread::stop() {
  if (std::this_thread::get_id() == id_) {
    stops_ = true;
    return;
  }
  const std::lock_guard locked(stopping_);
  if (!thread_.joinable()) return;
  stops_ = true;
  bell_.ring();
  thread_.join();
}

void ProgressThread::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // a nap takes no longer than it says
  id_ = std::this_thread::get_id();
  while (!stops_) {
    if (!is_attended()) {
      tend();
    } else if (naps_beside_wait_ > kNapsBesideWait) {
      sleep_beside_wait();
    } else {
      nap();
    }
  }
  // A callback that closes the context leaves others behind that are due then.
  Gate::Hold held(gate_);
  context_.call_back(held);
}

bool ProgressThread::is_attended() {
  const std::uint64_t turns = turns_.load(std::memory_order_relaxed);
  const bool has_moved = turns != std::exchange(turns_seen_, turns);
  if (has_moved) attended_at_.store(read_clock(), std::memory_order_relaxed);
  const bool waits = waits_.load(std::memory_order_relaxed) != 0;
  naps_beside_wait_ = waits ? naps_beside_wait_ + 1 : 0;
  return has_moved || waits;
}

void ProgressThread::note_calls() {
  gate_.set_calls(gate_.calls() - 1);  // ours
  const std::uint64_t calls = gate_.calls();
  if (calls == std::exchange(calls_seen_, calls)) return;
  attended_at_.store(read_clock(), std::memory_order_relaxed);
}

void ProgressThread::nap() {
  const timespec time{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(nap_).count()};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
  nap_ = std::min(2 * nap_, kLongestNap);
}

void ProgressThread::sleep_beside_wait() {
  naps_beside_wait_ = 0;
  Gate::Hold held(gate_);
  note_calls();
  if (waits_.load(std::memory_order_relaxed) == 0) return;
  held.leave_until_called(bell_, [this] {
    pollfd bell{.fd = bell_.descriptor(), .events = POLLIN, .revents = 0};
    if (!stops_) poll(&bell, 1, -1);
    bell_.silence();
  });
}

void ProgressThread::tend() {
  nap_ = kFirstNap;
  Gate::Hold held(gate_);
  note_calls();
  const int descriptor = context_.make_turn();
  context_.call_back(held);
  if (descriptor == Attended::kMoreToDo) return held.let_others_in();
  if (descriptor == Attended::kNothingWakes) return held.leave_for([this] { nap(); });
  Instant woken{};
  held.leave_until_called(bell_, [&] {
    pollfd what[] = {{.fd = descriptor, .events = POLLIN, .revents = 0},
                     {.fd = bell_.descriptor(), .events = POLLIN, .revents = 0}};
    if (!stops_) poll(what, 2, -1);
    woken = read_clock();
    bell_.silence();
  });
  // If the program has made turns since, it has watched for longer.
  if (turns_.load(std::memory_order_relaxed) == turns_seen_) context_.note_sleep(woken);
}

}  // namespace pullman
