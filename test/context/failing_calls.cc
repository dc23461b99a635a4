#include "context/failing_calls.h"

#include <dlfcn.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <mutex>
#include <optional>
#include <vector>

namespace pullman::test {
namespace {

struct Kind {
  std::string_view name;
  std::vector<int> errors;
};

const Kind& kind_of(Call call) {
  static const std::array<Kind, kCalls> kinds = {{
      {"socket", {EMFILE, ENOBUFS, EACCES}},
      {"bind", {EADDRINUSE, EADDRNOTAVAIL, EACCES}},
      {"listen", {EADDRINUSE}},
      {"accept4", {EMFILE, ECONNABORTED, ENOMEM}},
      {"connect", {ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL}},
      {"getsockname", {ENOBUFS}},
      {"setsockopt", {EPERM, ENOPROTOOPT, ENOMEM}},
      {"getsockopt", {ENOPROTOOPT}},
      {"ioctl", {EINVAL}},
      {"epoll_create1", {EMFILE}},
      {"epoll_ctl", {ENOSPC, ENOMEM}},
      {"epoll_wait", {EINTR}},
      {"timerfd_create", {EMFILE}},
      {"eventfd", {EMFILE}},
      {"poll", {EINTR}},
      {"recv", {EAGAIN, EINTR, ENOMEM, ECONNREFUSED}},
      {"send", {EAGAIN, ENOBUFS, EPERM, EHOSTUNREACH, ENETDOWN, EINTR}},
      {"read", {EINTR, EAGAIN}},
      {"getifaddrs", {ENOMEM}},
  }};
  return kinds[static_cast<std::size_t>(call)];
}

struct Armed {
  Failing::Order order;
  std::optional<Call> only;
};
std::mutex mutex;  // guards all below: two threads close the two contexts
std::optional<Armed> armed;
long counted_all = 0;
std::array<long, kCalls> counted_of{};
long failed_so_far = 0;
Call last_failed = Call::kSocket;

bool fails(Call call) {
  const std::lock_guard lock(mutex);
  if (!armed) return false;
  const long of_all = counted_all++;
  const long of_call = counted_of[static_cast<std::size_t>(call)]++;
  if (armed->only && *armed->only != call) return false;
  const Failing::Order& order = armed->order;
  const long at = armed->only ? of_call : of_all;
  if (order.nth == Failing::kNever || at < order.nth) return false;
  if (at != order.nth && (order.every == 0 || (at - order.nth) % order.every != 0)) return false;
  const auto& errors = kind_of(call).errors;
  ++failed_so_far;
  last_failed = call;
  errno = order.error != 0 ? order.error : errors[order.variant % errors.size()];
  return true;
}

void arm(const Armed& what) {
  const std::lock_guard lock(mutex);
  counted_all = failed_so_far = 0;
  counted_of.fill(0);
  armed = what;
}

// Returns the C library's function.
template <typename Function>
Function* original(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

std::string_view name(Call call) {
  return kind_of(call).name;
}
std::span<const int> errors_of(Call call) {
  return kind_of(call).errors;
}

Failing::Failing(const Order& order) {
  arm({order, std::nullopt});
}
Failing::Failing(Call call, const Order& order) {
  arm({order, call});
}
Failing::~Failing() {
  const std::lock_guard lock(mutex);
  armed.reset();
}
long Failing::counted() {
  return counted_all;
}
long Failing::counted(Call call) {
  return counted_of[static_cast<std::size_t>(call)];
}
long Failing::failed() {
  return failed_so_far;
}
Call Failing::last() {
  return last_failed;
}

}  // namespace pullman::test

using pullman::test::Call;
using pullman::test::fails;
using pullman::test::original;

#define PULLMAN_ORIGINAL(function) static auto* const next = original(&::function, #function)

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  PULLMAN_ORIGINAL(socket);
  return fails(Call::kSocket) ? -1 : next(domain, type, protocol);
}
int bind(int fd, const sockaddr* name, socklen_t bytes) noexcept {
  PULLMAN_ORIGINAL(bind);
  return fails(Call::kBind) ? -1 : next(fd, name, bytes);
}
int listen(int fd, int backlog) noexcept {
  PULLMAN_ORIGINAL(listen);
  return fails(Call::kListen) ? -1 : next(fd, backlog);
}
int accept4(int fd, sockaddr* name, socklen_t* bytes, int flags) {
  PULLMAN_ORIGINAL(accept4);
  return fails(Call::kAccept) ? -1 : next(fd, name, bytes, flags);
}
int connect(int fd, const sockaddr* name, socklen_t bytes) {
  PULLMAN_ORIGINAL(connect);
  return fails(Call::kConnect) ? -1 : next(fd, name, bytes);
}
int getsockname(int fd, sockaddr* name, socklen_t* bytes) noexcept {
  PULLMAN_ORIGINAL(getsockname);
  return fails(Call::kGetName) ? -1 : next(fd, name, bytes);
}
int getpeername(int fd, sockaddr* name, socklen_t* bytes) noexcept {
  PULLMAN_ORIGINAL(getpeername);
  return fails(Call::kGetName) ? -1 : next(fd, name, bytes);
}
int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) noexcept {
  PULLMAN_ORIGINAL(setsockopt);
  return fails(Call::kSetOption) ? -1 : next(fd, level, option, value, bytes);
}
int getsockopt(int fd, int level, int option, void* value, socklen_t* bytes) noexcept {
  PULLMAN_ORIGINAL(getsockopt);
  return fails(Call::kGetOption) ? -1 : next(fd, level, option, value, bytes);
}
int ioctl(int fd, unsigned long request, ...) noexcept {
  PULLMAN_ORIGINAL(ioctl);
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fails(Call::kIoControl) ? -1 : next(fd, request, argument);
}
int epoll_create1(int flags) noexcept {
  PULLMAN_ORIGINAL(epoll_create1);
  return fails(Call::kMakeEpoll) ? -1 : next(flags);
}
int epoll_ctl(int all, int operation, int fd, epoll_event* event) noexcept {
  PULLMAN_ORIGINAL(epoll_ctl);
  return fails(Call::kChangeEpoll) ? -1 : next(all, operation, fd, event);
}
int epoll_wait(int all, epoll_event* events, int most, int timeout) {
  PULLMAN_ORIGINAL(epoll_wait);
  return fails(Call::kWaitEpoll) ? -1 : next(all, events, most, timeout);
}
int timerfd_create(int clock, int flags) noexcept {
  PULLMAN_ORIGINAL(timerfd_create);
  return fails(Call::kMakeTimer) ? -1 : next(clock, flags);
}
int eventfd(unsigned value, int flags) noexcept {
  PULLMAN_ORIGINAL(eventfd);
  return fails(Call::kMakeEvent) ? -1 : next(value, flags);
}
int poll(pollfd* what, nfds_t count, int timeout) {
  PULLMAN_ORIGINAL(poll);
  return fails(Call::kPoll) ? -1 : next(what, count, timeout);
}
ssize_t recv(int fd, void* bytes, std::size_t room, int flags) {
  PULLMAN_ORIGINAL(recv);
  return fails(Call::kReceive) ? -1 : next(fd, bytes, room, flags);
}
ssize_t recvfrom(int fd, void* bytes, std::size_t room, int flags, sockaddr* from,
                 socklen_t* from_bytes) {
  PULLMAN_ORIGINAL(recvfrom);
  return fails(Call::kReceive) ? -1 : next(fd, bytes, room, flags, from, from_bytes);
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  PULLMAN_ORIGINAL(recvmsg);
  return fails(Call::kReceive) ? -1 : next(fd, message, flags);
}
int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  PULLMAN_ORIGINAL(recvmmsg);
  return fails(Call::kReceive) ? -1 : next(fd, messages, count, flags, timeout);
}
ssize_t sendto(int fd, const void* bytes, std::size_t size, int flags, const sockaddr* to,
               socklen_t to_bytes) {
  PULLMAN_ORIGINAL(sendto);
  return fails(Call::kSend) ? -1 : next(fd, bytes, size, flags, to, to_bytes);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  PULLMAN_ORIGINAL(sendmsg);
  return fails(Call::kSend) ? -1 : next(fd, message, flags);
}
int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  PULLMAN_ORIGINAL(sendmmsg);
  return fails(Call::kSend) ? -1 : next(fd, messages, count, flags);
}
ssize_t read(int fd, void* bytes, std::size_t room) {
  PULLMAN_ORIGINAL(read);
  return fails(Call::kRead) ? -1 : next(fd, bytes, room);
}
int getifaddrs(ifaddrs** out) noexcept {
  PULLMAN_ORIGINAL(getifaddrs);
  return fails(Call::kInterfaces) ? -1 : next(out);
}
unsigned if_nametoindex(const char* interface) noexcept {
  PULLMAN_ORIGINAL(if_nametoindex);
  return fails(Call::kInterfaces) ? 0 : next(interface);
}

// The calls of the data path (nic/udp/calls.h).
long syscall(long number, ...) noexcept {
  PULLMAN_ORIGINAL(syscall);
  std::array<long, 6> arguments{};
  va_list rest;
  va_start(rest, number);
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  switch (number) {
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      if (fails(Call::kReceive)) return -1;
      break;
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      if (fails(Call::kSend)) return -1;
      break;
    default:
      break;
  }
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

}  // extern "C"
