// System calls that fail when a test says so: stands between the library and the C library in a
// program that links failing_calls.cc. Only the calls of the drivers and of who sleeps; not
// close(), which does what it is asked for whatever it says.
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
// What that call may plausibly fail with, for some time or once.
std::span<const int> errors_of(Call call);

// What is to fail, from when it is made until its end. Calls are counted from then on.
class Failing {
 public:
  static constexpr long kNever = -1;
  struct Order {
    long nth = kNever;  // this one fails, from 0
    long every = 0;     // and then each so many later; 0: none
    int error = 0;      // 0: the `variant`th of errors_of() the call
    std::size_t variant = 0;
  };

  // Of all calls, or of that kind.
  explicit Failing(const Order& order);
  Failing(Call call, const Order& order);
  ~Failing();
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

  // So far.
  static long counted();
  static long counted(Call call);
  static long failed();
  // Of the last that failed.
  static Call last();
};

}  // namespace pullman::test
