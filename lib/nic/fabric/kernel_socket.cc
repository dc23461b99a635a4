#include "nic/fabric/kernel_socket.h"

#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace pullman::nic::fabric {
namespace {

// Returns what the kernel charges a socket for one packet (skb->truesize): a struct sk_buff, and a
// buffer of the next power of two that holds headroom, headers, payload and skb_shared_info. A full
// packet of a 1500-byte interface: 2304, measured on loopback and veth.
std::size_t charged_bytes(std::size_t packet_bytes) {
  constexpr std::size_t kSkBuff = 256;
  constexpr std::size_t kHeadersAndHeadroom = 28 + 64;
  constexpr std::size_t kSharedInfo = 320;
  return kSkBuff + std::bit_ceil(packet_bytes + kHeadersAndHeadroom + kSharedInfo);
}

// The kernel uncharges bytes that were read only when they amount to a quarter of the buffer, so a
// quarter may be unavailable while we read steadily.
std::size_t usable(std::size_t buffer_bytes) {
  return buffer_bytes - buffer_bytes / 4;
}

bool is_bound_to(int socket, const sockaddr* address, socklen_t length) {
  sockaddr_storage own{};
  socklen_t own_length = sizeof own;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_length) != 0) return false;
  int type = 0;
  socklen_t type_length = sizeof type;
  getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_length);
  return type == SOCK_DGRAM && own_length == length && std::memcmp(&own, address, length) == 0;
}

std::size_t receive_buffer(int socket) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  if (socket >= 0 && getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0) {
    return static_cast<std::size_t>(bytes);
  }
  constexpr std::size_t kUsualDefault = 212992;
  std::ifstream in("/proc/sys/net/core/rmem_default");
  std::size_t value = 0;
  return in >> value ? value : kUsualDefault;
}

}  // namespace

int find_socket(const sockaddr* address, socklen_t length) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number >= 0 && is_bound_to(number, address, length)) return number;
  }
  return -1;
}

void grow_receive_buffer(int socket, std::size_t packets, std::size_t packet_bytes) {
  if (socket < 0) return;
  const std::size_t wanted = packets * charged_bytes(packet_bytes) * 4 / 3;
  if (wanted <= receive_buffer(socket)) return;
  // The kernel doubles the value, and grants no more than rmem_max.
  const int half = static_cast<int>(std::min<std::size_t>(wanted / 2, 1u << 30));
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &half, sizeof half);
}

void forbid_fragments(int socket) {
  if (socket < 0) return;
  // The option that is not of the socket's family is refused.
  const int ipv4 = IP_PMTUDISC_PROBE;
  const int ipv6 = IPV6_PMTUDISC_PROBE;
  setsockopt(socket, IPPROTO_IP, IP_MTU_DISCOVER, &ipv4, sizeof ipv4);
  setsockopt(socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &ipv6, sizeof ipv6);
}

std::size_t packets_held(int socket, std::size_t packet_bytes) {
  return std::max<std::size_t>(1, usable(receive_buffer(socket)) / charged_bytes(packet_bytes));
}

}  // namespace pullman::nic::fabric
