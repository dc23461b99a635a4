#include "context/trace_signal.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/log.h"

namespace pullman {
namespace {

// A handler is of the process, and so is what it writes.
constexpr int kSignals = 65;
std::array<std::atomic<std::uint32_t>, kSignals> seen{};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);  // else no handler may touch it
std::mutex taking;

void note_signal(int number) {
  seen[static_cast<std::size_t>(number)].fetch_add(1, std::memory_order_relaxed);
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == note_signal;
}

}  // namespace

int TraceSignal::number_of(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  if (name == "USR1") return SIGUSR1;
  return name == "USR2" ? SIGUSR2 : 0;
}

TraceSignal::TraceSignal(int number) : number_(number) {
  if (number_ == 0) return;
  const std::lock_guard locked(taking);
  struct sigaction before {};
  sigaction(number_, nullptr, &before);
  const bool programs = (before.sa_flags & SA_SIGINFO) != 0 ||
                        (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  if (programs && !is_ours(before)) {
    log().warn(
        "the program has a handler for SIG{}, so it asks for no trace: choose another "
        "(PULLMAN_TRACE_SIGNAL)",
        sigabbrev_np(number_));
    number_ = 0;
    return;
  }
  struct sigaction ours {};
  ours.sa_handler = note_signal;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  sigaction(number_, &ours, nullptr);
}

std::uint32_t TraceSignal::count() const {
  return seen[static_cast<std::size_t>(number_)].load(std::memory_order_relaxed);
}

}  // namespace pullman
