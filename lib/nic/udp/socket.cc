#include "nic/udp/socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <utility>

namespace pullman::nic::udp {
namespace {

bool set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0;
}

// IP_PMTUDISC_PROBE sets the don't-fragment bit and ignores the kernel's path MTU: an ICMP message,
// which anybody can forge, informs and does not decide.
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

Socket open_socket(const Address& own, const std::string& device) {
  Socket out = open_bound(own, SOCK_DGRAM, device, Tie::kAddress);
  set_path_options(out.fd(), own.kind == 6);
  return out;
}

// Opens the one with only the address first. While sockets may share an IPv4 port the kernel
// delivers to the one that was bound last, even if another fits better: packets that arrived in
// that moment would be read much later than those behind them, and count as lost.
Sockets open_sockets(const Address& own, const std::string& device, Tie tie) {
  Socket by_address = open_socket(own, device);
  if (tie == Tie::kAddress) return {.main = std::move(by_address), .by_others = Socket()};
  const std::array<const Socket*, 1> others{&by_address};
  Socket by_device = open_beside(others, device, Tie::kDevice);
  if (by_device.fd() < 0) return {.main = std::move(by_address), .by_others = Socket()};
  return {.main = std::move(by_device), .by_others = std::move(by_address)};
}

// All sockets must allow sharing the port, but only while another one is bound.
Socket open_beside(std::span<const Socket* const> others, const std::string& device, Tie tie) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  auto* const at = reinterpret_cast<sockaddr*>(&name);
  if (getsockname(others.front()->fd(), at, &length) != 0) return Socket();
  Socket out(socket(name.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out.fd() < 0) return Socket();
  const bool ipv6 = name.ss_family == AF_INET6;
  if (ipv6) set(out.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (tie == Tie::kDevice && !bind_to_device(out, device)) return Socket();
  const auto let_share = [&](int value) {
    set(out.fd(), SOL_SOCKET, SO_REUSEPORT, value);
    for (const Socket* other : others) set(other->fd(), SOL_SOCKET, SO_REUSEPORT, value);
  };
  let_share(1);
  const bool bound = bind(out.fd(), at, length) == 0;
  let_share(0);
  if (!bound) return Socket();
  set_path_options(out.fd(), ipv6);
  return out;
}

bool connect_to(const Socket& socket, const sockaddr* name, socklen_t bytes) {
  return connect(socket.fd(), name, bytes) == 0;
}

Offloads offloads_of(const Socket& socket) {
  int value = 0;
  socklen_t length = sizeof value;
  const auto knows = [&](int option) {
    return getsockopt(socket.fd(), IPPROTO_UDP, option, &value, &length) == 0;
  };
  return {.segment = knows(UDP_SEGMENT), .coalesce = knows(UDP_GRO)};
}

std::size_t send_buffer_of(const Socket& socket) {
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(socket.fd(), SOL_SOCKET, SO_SNDBUF, &granted, &length);
  return static_cast<std::size_t>(std::max(granted, 0));
}

void grow_send_buffer(const Socket& socket, std::size_t bytes) {
  if (send_buffer_of(socket) >= bytes) return;
  // The kernel doubles the value.
  const int half = static_cast<int>(std::min<std::size_t>(bytes / 2, 1u << 30));
  if (!set(socket.fd(), SOL_SOCKET, SO_SNDBUFFORCE, half)) {
    set(socket.fd(), SOL_SOCKET, SO_SNDBUF, half);
  }
}

}  // namespace pullman::nic::udp
