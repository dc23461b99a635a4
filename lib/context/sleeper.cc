#include "context/sleeper.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/log.h"

namespace pullman {
namespace {

bool watch(int all, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(all, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

void Sleeper::make() {
  asked_ = true;
  const auto has_none = [](nic::Port* port) { return port->wait_fd() < 0; };
  if (std::any_of(ports_.begin(), ports_.end(), has_none)) return;
  all_ = epoll_create1(EPOLL_CLOEXEC);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  const bool works = all_ >= 0 && timer_ >= 0 && watch(all_, timer_) &&
                     std::all_of(others_.begin(), others_.end(),
                                 [this](int other) { return other < 0 || watch(all_, other); }) &&
                     std::all_of(ports_.begin(), ports_.end(),
                                 [this](nic::Port* port) { return watch(all_, port->wait_fd()); });
  watching_ = true;
  if (works) return;
  log().warn("waiting will poll and not sleep: {}", std::strerror(errno));
  close_abortively();
}

void Sleeper::set_port(std::size_t place, nic::Port* port) {
  ports_.resize(std::max(ports_.size(), place + 1));
  ports_[place] = port;
  if (all_ < 0) return;
  if (const int descriptor = port->wait_fd(); descriptor < 0 || !watch(all_, descriptor)) {
    return close_abortively();
  }
  if (!watching_) port->unwatch();
}

void Sleeper::add(int descriptor) {
  others_.push_back(descriptor);
  if (all_ >= 0 && !watch(all_, descriptor)) close_abortively();
}

void Sleeper::remove(int descriptor) {
  std::erase(others_, descriptor);
  if (all_ >= 0) epoll_ctl(all_, EPOLL_CTL_DEL, descriptor, nullptr);
}

// wait_fd() arms a port again; its descriptor is the same and still in the set.
bool Sleeper::watch_again() {
  watching_ = all_ >= 0 && std::all_of(ports_.begin(), ports_.end(),
                                       [](nic::Port* port) { return port->wait_fd() >= 0; });
  if (!watching_) unwatch();
  return watching_;
}

void Sleeper::unwatch() {
  for (nic::Port* port : ports_) port->unwatch();
  watching_ = false;
}

Sleeper::~Sleeper() {
  close_abortively();
}

void Sleeper::close_abortively() {
  if (timer_ >= 0) close(timer_);
  if (all_ >= 0) close(all_);
  all_ = timer_ = -1;
}

// Setting the timer again clears its expiry. A timer that is set for the same time is left as it
// is, since most sleeps are ended by a packet and do not change the deadline.
void Sleeper::arm(Instant when) {
  if (when == armed_) return;
  armed_ = when;
  itimerspec spec{};  // zero disarms the timer
  if (when != kNever) {
    const auto ns = std::max<std::int64_t>(when.time_since_epoch().count(), 1);
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
  }
  PULLMAN_CHECK(timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

void Sleeper::sleep(Instant now, Instant until) {
  if (until <= now) return;
  arm(until);
  epoll_event event;
  epoll_wait(all_, &event, 1, -1);
}

}  // namespace pullman
