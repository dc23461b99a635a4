#include "nic/udp/socket.h"

#include <fmt/format.h>
#include <linux/in6.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "nic/port.h"

namespace pullman::nic::udp {
namespace {

bool set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

[[noreturn]] void fail_to_open(const Address& own, const std::string& device) {
  if (errno == EADDRINUSE) {
    throw NicError(fmt::format(
        "the port asked for on {} is in use; choose another, or 0 for any free one", device));
  }
  throw NicError(fmt::format("cannot open a UDP socket on {} ({}): {}", device, host_string(own),
                             std::strerror(errno)));
}

// IP_PMTUDISC_PROBE: the don't-fragment bit is set, and what the kernel believes of the path is not
// asked: an ICMP message, which anybody can forge, informs and does not decide.
void set_path_options(int socket, bool ipv6) {
  if (ipv6) {
    set(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
    set(socket, IPPROTO_IPV6, IPV6_RECVERR, 1);
  } else {
    set(socket, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    set(socket, IPPROTO_IP, IP_RECVERR, 1);
  }
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket open_socket(const Address& own, const std::string& device) {
  sockaddr_storage name;
  const socklen_t length = to_sockaddr(own, name);
  if (length == 0) {
    throw NicError(fmt::format("{} has no IP address: {}", device, host_string(own)));
  }
  Socket out(socket(name.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) fail_to_open(own, device);
  const bool ipv6 = name.ss_family == AF_INET6;
  if (ipv6) set(out.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (bind(out.fd(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    fail_to_open(own, device);
  }
  set_path_options(out.fd(), ipv6);
  return out;
}

// Whether a second socket may share the port is asked of both only while the second is bound.
Socket open_beside(const Socket& first) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  auto* const at = reinterpret_cast<sockaddr*>(&name);
  if (getsockname(first.fd(), at, &length) != 0) return Socket();
  Socket out(socket(name.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) return Socket();
  const bool ipv6 = name.ss_family == AF_INET6;
  if (ipv6) set(out.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set(first.fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  set(out.fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  const bool bound = bind(out.fd(), at, length) == 0;
  set(first.fd(), SOL_SOCKET, SO_REUSEPORT, 0);
  set(out.fd(), SOL_SOCKET, SO_REUSEPORT, 0);
  if (!bound) return Socket();
  set_path_options(out.fd(), ipv6);
  return out;
}

bool connect_to(const Socket& socket, const sockaddr* name, socklen_t bytes) {
  return connect(socket.fd(), name, bytes) == 0;
}

WaitSet::WaitSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void WaitSet::add(const Socket& socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket.fd(), &event);
}

Address address_of(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length).value_or(Address{});
}

Offloads offloads_of(const Socket& socket) {
  int value = 0;
  socklen_t length = sizeof value;
  const auto knows = [&](int option) {
    return getsockopt(socket.fd(), IPPROTO_UDP, option, &value, &length) == 0;
  };
  return {.segment = knows(UDP_SEGMENT), .coalesce = knows(UDP_GRO)};
}

void set_busy_poll(const Socket& socket, unsigned microseconds) {
  if (set(socket.fd(), SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(microseconds))) return;
  log().warn("the kernel refuses to poll for {} us (SO_BUSY_POLL): {}", microseconds,
             std::strerror(errno));
}

void grow_send_buffer(const Socket& socket, std::size_t bytes) {
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &granted, &length);
  if (static_cast<std::size_t>(granted) >= bytes) return;
  // The kernel doubles what it is told.
  const int half = static_cast<int>(std::min<std::size_t>(bytes / 2, 1u << 30));
  if (!set(socket.fd(), SOL_SOCKET, SO_SNDBUFFORCE, half)) {
    set(socket.fd(), SOL_SOCKET, SO_SNDBUF, half);
  }
}

}  // namespace pullman::nic::udp
