#include "nic/socket.h"

#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "nic/port.h"

namespace pullman::nic {
namespace {

bool set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

[[noreturn]] void fail_to_open(const Address& own, const std::string& device) {
  if (errno == EADDRINUSE) {
    throw NicError(
        fmt::format("port {} on {} is in use: choose another, or 0 for any free one (Config::port, "
                    "PULLMAN_PORT; of data Config::data_port, PULLMAN_DATA_PORT)",
                    port_of(own), device));
  }
  const std::string sentence = fmt::format("cannot open a socket on {} ({}): {}", device,
                                           to_string(own), std::strerror(errno));
  if (errno == EADDRNOTAVAIL) throw AddressNotReady(sentence);
  throw NicError(sentence);
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

WaitSet::WaitSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool WaitSet::add(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void WaitSet::remove(int descriptor) {
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, descriptor, nullptr);
}

// The port of a stream is reserved for connections that ended recently. A caller that asks for it
// by number may have it nevertheless (if those connections allow it, too); any free port must be
// really free.
Socket open_bound(const Address& own, int type, const std::string& device, Tie tie) {
  sockaddr_storage name;
  const socklen_t length = to_sockaddr(own, name);
  if (length == 0) {
    throw NicError(fmt::format("{} has no IP address: {}", device, host_string(own)));
  }
  Socket out(socket(name.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) fail_to_open(own, device);
  if (name.ss_family == AF_INET6) set(out.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (tie == Tie::kDevice) bind_to_device(out, device);
  if (type == SOCK_STREAM && port_of(own) != 0) set(out.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(out.fd(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    fail_to_open(own, device);
  }
  if (type == SOCK_STREAM) set(out.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  return out;
}

bool bind_to_device(const Socket& socket, const std::string& device) {
  return setsockopt(socket.fd(), SOL_SOCKET, SO_BINDTODEVICE, device.data(),
                    static_cast<socklen_t>(device.size())) == 0;
}

int device_of(const Socket& socket) {
  int index = 0;
  socklen_t length = sizeof index;
  getsockopt(socket.fd(), SOL_SOCKET, SO_BINDTOIFINDEX, &index, &length);
  return index;
}

void send_by_device(int socket, const std::string& device) {
  if (socket < 0) return;
  const int index = static_cast<int>(htonl(if_nametoindex(device.c_str())));
  // The option that is not of the socket's family is refused.
  set(socket, IPPROTO_IP, IP_UNICAST_IF, index);
  set(socket, IPPROTO_IPV6, IPV6_UNICAST_IF, index);
}

Address address_of(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length).value_or(Address{});
}

Address bound_address(const Socket& socket, const std::string& device) {
  const Address found = address_of(socket);
  if (found.kind != 0) return found;
  throw NicError(fmt::format("the kernel does not say where a socket on {} is bound: {}", device,
                             std::strerror(errno)));
}

void set_busy_poll(const Socket& socket, unsigned microseconds) {
  if (set(socket.fd(), SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(microseconds))) return;
  log().warn("the kernel refuses to poll for {} us (SO_BUSY_POLL): {}", microseconds,
             std::strerror(errno));
}

}  // namespace pullman::nic
