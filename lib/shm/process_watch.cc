#include "shm/process_watch.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace pullman::shm {

ProcessWatch::ProcessWatch() : all_(epoll_create1(EPOLL_CLOEXEC)) {}

ProcessWatch::~ProcessWatch() {
  if (all_ >= 0) close(all_);
}

bool ProcessWatch::any_ended() const {
  epoll_event event;
  return all_ >= 0 && epoll_wait(all_, &event, 1, 0) > 0;
}

// The id may have been given to another process before the descriptor was opened.
ProcessWatch::Watched::Watched(ProcessWatch& watch, const ProcessName& process)
    : watch_(&watch), process_(static_cast<int>(syscall(SYS_pidfd_open, process.id, 0))) {
  if (process_ < 0) return;
  epoll_event event{};
  event.events = EPOLLIN;
  const bool added = is_alive(process) && watch.all_ >= 0 &&
                     epoll_ctl(watch.all_, EPOLL_CTL_ADD, process_, &event) == 0;
  if (!added) close(std::exchange(process_, -1));
}

// A child of this process may have the descriptor, too, so closing it would not take it out of the
// set.
ProcessWatch::Watched::~Watched() {
  if (process_ < 0) return;
  epoll_ctl(watch_->all_, EPOLL_CTL_DEL, process_, nullptr);
  close(process_);
}

ProcessWatch::Watched::Watched(Watched&& other) noexcept
    : watch_(other.watch_), process_(std::exchange(other.process_, -1)) {}

ProcessWatch::Watched& ProcessWatch::Watched::operator=(Watched&& other) noexcept {
  std::swap(watch_, other.watch_);
  std::swap(process_, other.process_);
  return *this;
}

bool ProcessWatch::Watched::runs() const {
  pollfd process{.fd = process_, .events = POLLIN, .revents = 0};
  return process_ < 0 || poll(&process, 1, 0) <= 0;
}

}  // namespace pullman::shm
