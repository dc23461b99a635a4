// System calls that fail on a test's order: stands between the library and the C library in a
// program that links failing_calls.cc. Covers the calls of drivers and of sleeping; not close(),
// which closes even when it reports an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pullman::test {

enum class Call : std::uint8_t {
  kSocket,
  kBind,
  kListen,
  kAccept,
  kConnect,
  kGetName,      // getsockname(), getpeername()
  kSetOption,    // setsockopt()
  kGetOption,    // getsockopt()
  kIoControl,    // ioctl()
  kMakeEpoll,    // epoll_create1()
  kChangeEpoll,  // epoll_ctl()
  kWaitEpoll,    // epoll_wait()
  kMakeTimer,    // timerfd_create()
  kMakeEvent,    // eventfd()
  kPoll,
  kReceive,  // recv() and its siblings
  kSend,     // send() and its siblings
  kRead,
  kInterfaces,  // getifaddrs(), if_nametoindex()
};
inline constexpr std::size_t kCalls = 19;

std::string_view name(Call call);
// Returns errors with which that call may plausibly fail, once or for some time.
std::span<const int> errors_of(Call call);

// An order of failures, in force during its life. Calls are counted from its beginning.
class Failing {
 public:
  static constexpr long kNever = -1;
  struct Order {
    long nth = kNever;  // the first call that fails, from 0
    long every = 0;     // distance to each further failure; 0: none
    int error = 0;      // 0: the `variant`th of errors_of() the call
    std::size_t variant = 0;
  };

  // Fails calls of any kind, or of that kind.
  explicit Failing(const Order& order);
  Failing(Call call, const Order& order);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

  // Calls so far.
  static long counted();
  static long counted(Call call);
  static long failed();
  // The kind of the last failure.
  static Call last();
};

}  // namespace pullman::test
