#include "shm/process_watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace pullman::shm {

ProcessWatch::ProcessWatch(std::size_t max_descriptors)
    : all_(epoll_create1(EPOLL_CLOEXEC)), free_descriptors_(all_ >= 0 ? max_descriptors : 0) {}

ProcessWatch::~ProcessWatch() {
  if (all_ >= 0) close(all_);
}

bool ProcessWatch::any_ended() const {
  epoll_event event;
  return (all_ >= 0 && epoll_wait(all_, &event, 1, 0) > 0) ||
         std::any_of(polled_.begin(), polled_.end(), [](const Polled* one) { return one->ended; });
}

void ProcessWatch::poll_next(std::size_t count) {
  for (count = std::min(count, polled_.size()); count > 0; --count) {
    if (next_ >= polled_.size()) next_ = 0;
    polled_[next_++]->poll();
  }
}

void ProcessWatch::forget(const Polled& one) {
  const auto at = std::find(polled_.begin(), polled_.end(), &one);
  if (at - polled_.begin() < static_cast<std::ptrdiff_t>(next_)) --next_;
  polled_.erase(at);
}

ProcessWatch::Watched::Watched(ProcessWatch& watch, const ProcessName& process) : watch_(&watch) {
  if (open(process) || has_ended(process)) return;
  polled_ = std::make_unique<Polled>(Polled{.process = process});
  watch.polled_.push_back(polled_.get());
}

// The id may have been given to another process before the descriptor was opened.
bool ProcessWatch::Watched::open(const ProcessName& process) {
  if (watch_->free_descriptors_ == 0) return false;
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, process.id, 0));
  if (descriptor_ < 0) return false;
  epoll_event event{};
  event.events = EPOLLIN;
  const bool added = process.started != 0 && process_of(process.id) == process &&
                     epoll_ctl(watch_->all_, EPOLL_CTL_ADD, descriptor_, &event) == 0;
  if (!added) {
    close(std::exchange(descriptor_, -1));
    return false;
  }
  --watch_->free_descriptors_;
  return true;
}

// A child of this process may have the descriptor, too, so closing it would not take it out of the
// set.
ProcessWatch::Watched::~Watched() {
  if (polled_ != nullptr) watch_->forget(*polled_);
  if (descriptor_ < 0) return;
  epoll_ctl(watch_->all_, EPOLL_CTL_DEL, descriptor_, nullptr);
  close(descriptor_);
  ++watch_->free_descriptors_;
}

ProcessWatch::Watched::Watched(Watched&& other) noexcept
    : watch_(other.watch_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      polled_(std::move(other.polled_)) {}

ProcessWatch::Watched& ProcessWatch::Watched::operator=(Watched&& other) noexcept {
  std::swap(watch_, other.watch_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(polled_, other.polled_);
  return *this;
}

bool ProcessWatch::Watched::runs() const {
  if (polled_ != nullptr) return !polled_->ended;
  pollfd process{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return descriptor_ < 0 || ::poll(&process, 1, 0) <= 0;
}

void ProcessWatch::Watched::poll() const {
  if (polled_ != nullptr) polled_->poll();
}

}  // namespace pullman::shm
