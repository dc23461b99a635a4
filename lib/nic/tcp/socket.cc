#include "nic/tcp/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "nic/port.h"

namespace pullman::nic::tcp {
namespace {

constexpr int kBacklog = 512;
// A connection is dead if no byte is acknowledged for this long; the next packet opens another. A
// shorter time would end connections that survive a short outage; with a longer one, the
// increasingly rare retransmissions would notice late that the network is back.
constexpr int kDeadAfterMs = 2000;
// After this time an idle connection is probed. It ends if the probe is not answered: beside
// TCP_USER_TIMEOUT the number of probes has no effect (tcp(7)).
constexpr int kIdleSeconds = 60;
constexpr int kProbeSeconds = 5;
// Bytes that a socket should hold: 128 of the longest packets.
constexpr std::size_t kUsefulBytes = 4u << 20;
// If the system grants less, its own buffers are better, which begin smaller and grow with use.
constexpr std::size_t kLeastUseful = 1u << 20;
// With those: the first window that a receiver grants.
constexpr std::size_t kFirstWindow = 65535;

bool set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

void prepare(const Socket& socket) {
  const int fd = socket.fd();
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadAfterMs);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
}

// One of the two buffers of a socket.
struct Kind {
  int option;
  int force;  // exceeds the system's limit, with the privilege
};
constexpr Kind kReceive = {SO_RCVBUF, SO_RCVBUFFORCE};
constexpr Kind kSend = {SO_SNDBUF, SO_SNDBUFFORCE};

// The kernel doubles the requested value: half is for its own overhead.
std::size_t granted_bytes(const Socket& socket, Kind kind) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  getsockopt(socket.fd(), SOL_SOCKET, kind.option, &bytes, &length);
  return static_cast<std::size_t>(std::max(bytes, 0)) / 2;
}

std::size_t ask_for(const Socket& socket, Kind kind, std::size_t bytes) {
  const int wanted = static_cast<int>(bytes);
  set(socket.fd(), SOL_SOCKET, kind.option, wanted);
  if (granted_bytes(socket, kind) < bytes) set(socket.fd(), SOL_SOCKET, kind.force, wanted);
  return std::min(granted_bytes(socket, kind), bytes);
}

}  // namespace

// Tries it on a separate socket: a size once requested cannot be taken back.
Buffers choose_buffers(const Socket& like, std::size_t exact_receive_bytes) {
  const int family = address_of(like).kind == 6 ? AF_INET6 : AF_INET;
  const Socket scratch(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Buffers out{.holds_bytes = kFirstWindow};
  if (ask_for(scratch, kSend, kUsefulBytes) >= kLeastUseful) out.send_bytes = kUsefulBytes;
  const bool exact = exact_receive_bytes != 0;
  const std::size_t wanted = exact ? exact_receive_bytes : kUsefulBytes;
  const std::size_t granted = ask_for(scratch, kReceive, wanted);
  if (exact || granted >= kLeastUseful) {
    out.receive_bytes = wanted;
    out.holds_bytes = granted;
  }
  return out;
}

void set_buffers(const Socket& socket, const Buffers& buffers) {
  if (buffers.receive_bytes != 0) ask_for(socket, kReceive, buffers.receive_bytes);
  if (buffers.send_bytes != 0) ask_for(socket, kSend, buffers.send_bytes);
}

Socket open_listener(const Address& own, const std::string& device, Tie tie) {
  Socket out = open_bound(own, SOCK_STREAM, device, tie);
  if (listen(out.fd(), kBacklog) != 0) {
    throw NicError(fmt::format("cannot listen for TCP connections on {} ({}): {}", device,
                               host_string(own), std::strerror(errno)));
  }
  return out;
}

// The kernel checks that the port may be shared when the second socket is bound, and again when it
// listens.
Socket listen_beside(const Socket& first) {
  sockaddr_storage name;
  const socklen_t length = to_sockaddr(address_of(first), name);
  Socket out(socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) return Socket();
  if (name.ss_family == AF_INET6) set(out.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  set(out.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  for (const int fd : {first.fd(), out.fd()}) set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  const bool listens = bind(out.fd(), reinterpret_cast<const sockaddr*>(&name), length) == 0 &&
                       listen(out.fd(), kBacklog) == 0;
  for (const int fd : {first.fd(), out.fd()}) set(fd, SOL_SOCKET, SO_REUSEPORT, 0);
  return listens ? std::move(out) : Socket();
}

Socket accept_from(const Socket& listener) {
  Socket out(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (out.fd() >= 0) prepare(out);
  return out;
}

// The kernel chooses the local port when it connects, not when it binds: so each destination can
// use all ports of the host, instead of all destinations sharing them.
Socket begin_to_connect(const Address& own, const std::string& device, const Buffers& buffers,
                        const sockaddr* to, socklen_t bytes) {
  Socket out(socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) return Socket();
  prepare(out);
  set_buffers(out, buffers);
  set(out.fd(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  if (!device.empty()) bind_to_device(out, device);
  sockaddr_storage from;
  const socklen_t length = to_sockaddr(with_port(own, 0), from);
  if (bind(out.fd(), reinterpret_cast<const sockaddr*>(&from), length) != 0) return Socket();
  if (connect(out.fd(), to, bytes) == 0 || errno == EINPROGRESS) return out;
  const int why = errno;
  out = Socket();
  errno = why;
  return out;
}

bool is_own_echo(const Socket& socket) {
  return address_of(socket) == far_address(socket);
}

Address far_address(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  return from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length).value_or(Address{});
}

std::size_t unacknowledged_bytes(const Socket& socket) {
  int bytes = 0;
  ioctl(socket.fd(), TIOCOUTQ, &bytes);
  return static_cast<std::size_t>(std::max(bytes, 0));
}

}  // namespace pullman::nic::tcp
