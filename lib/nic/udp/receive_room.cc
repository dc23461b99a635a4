#include "nic/udp/receive_room.h"

#include <linux/sock_diag.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "nic/port.h"

namespace pullman::nic::udp {
namespace {

// A link has at most 4096 packets in flight (docs/wire.md). Many links that share the socket should
// have room for more than a burst each: 64 of them for two. Asks the system for no more memory than
// this.
constexpr std::size_t kMaxPackets = 8192;
constexpr std::size_t kMaxBytes = 32u << 20;

// One struct sk_buff, and a buffer of the next power of two for headroom, headers, payload and
// skb_shared_info; beyond 16 KiB pages of just the size. Measured on loopback and veth (Linux
// 6.18): 832 for 64 bytes, 2304 for 1472, 16640 for 8972, 66339 for 65507.
std::size_t estimated_charge(std::size_t packet_bytes) {
  constexpr std::size_t kSkBuff = 256;
  constexpr std::size_t kHeadersAndHeadroom = 28 + 64;
  constexpr std::size_t kSharedInfo = 320;
  constexpr std::size_t kMaxInOnePiece = 16384;
  const std::size_t piece = std::bit_ceil(packet_bytes + kHeadersAndHeadroom + kSharedInfo);
  if (piece <= kMaxInOnePiece) return kSkBuff + piece;
  return kSkBuff + kHeadersAndHeadroom + 2 * kSharedInfo + packet_bytes;
}

using MemoryInfo = std::array<std::uint32_t, SK_MEMINFO_VARS>;

MemoryInfo memory_of(const Socket& socket) {
  MemoryInfo info{};
  socklen_t length = sizeof info;
  getsockopt(socket.fd(), SOL_SOCKET, SO_MEMINFO, info.data(), &length);
  return info;
}

// Measures the charge; returns 0 if the datagram does not arrive.
std::size_t weighed_charge(const Address& own, std::size_t packet_bytes) {
  const Socket scratch = open_socket(with_port(own, 0), "loopback");
  sockaddr_storage name;
  const socklen_t length = to_sockaddr(address_of(scratch), name);
  const std::vector<std::byte> packet(packet_bytes);
  if (sendto(scratch.fd(), packet.data(), packet.size(), 0,
             reinterpret_cast<const sockaddr*>(&name), length) < 0) {
    return 0;
  }
  return memory_of(scratch)[SK_MEMINFO_RMEM_ALLOC];
}

std::size_t granted_bytes(const Socket& socket) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  getsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &bytes, &length);
  return static_cast<std::size_t>(std::max(bytes, 0));
}

// Asks for half: the kernel doubles the value.
void ask_for(const Socket& socket, int option, std::size_t bytes) {
  const int half = static_cast<int>(bytes / 2);
  setsockopt(socket.fd(), SOL_SOCKET, option, &half, sizeof half);
}

// The kernel uncharges bytes that were read only when they amount to a quarter of the buffer, so a
// quarter may be unavailable while we read steadily.
std::size_t usable(std::size_t buffer_bytes) {
  return buffer_bytes - buffer_bytes / 4;
}

}  // namespace

std::size_t charged_bytes(const Address& own, std::size_t packet_bytes) {
  return std::max(weighed_charge(own, packet_bytes), estimated_charge(packet_bytes));
}

ReceiveRoom make_receive_room(const Socket& socket, std::size_t charged, std::size_t exact_bytes) {
  ReceiveRoom room;
  if (exact_bytes != 0) {
    room.wanted_bytes = 2 * exact_bytes;
    ask_for(socket, SO_RCVBUF, room.wanted_bytes);
    if (granted_bytes(socket) < room.wanted_bytes) {
      ask_for(socket, SO_RCVBUFFORCE, room.wanted_bytes);  // refused without CAP_NET_ADMIN
    }
  } else {
    room.wanted_bytes = std::min(kMaxPackets * charged * 4 / 3, kMaxBytes);
    if (granted_bytes(socket) < room.wanted_bytes) {
      ask_for(socket, SO_RCVBUF, room.wanted_bytes);
      ask_for(socket, SO_RCVBUFFORCE, room.wanted_bytes);  // refused without CAP_NET_ADMIN
    }
  }
  room.buffer_bytes = granted_bytes(socket);
  room.packets = std::max<std::size_t>(1, usable(room.buffer_bytes) / charged);
  return room;
}

std::uint64_t datagrams_dropped(const Socket& socket) {
  return memory_of(socket)[SK_MEMINFO_DROPS];
}

}  // namespace pullman::nic::udp
