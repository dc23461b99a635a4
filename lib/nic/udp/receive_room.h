// How many packets a socket holds unread: what the kernel grants it, over what the kernel charges
// for a packet. Cold: once per port.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/udp/socket.h"

namespace pullman::nic::udp {

// What the kernel charges a socket for a packet of that size that came alone: a datagram to
// ourselves is weighed; where that does not arrive, an estimate. Packets that come together are
// charged less.
std::size_t charged_bytes(const Address& own, std::size_t packet_bytes);

struct ReceiveRoom {
  std::size_t buffer_bytes = 0;  // SO_RCVBUF, as the kernel counts
  std::size_t packets = 0;       // held before one is dropped
  std::size_t wanted_bytes = 0;
};

// Makes the receive buffer as large as the system grants, up to what the protocol can use; or, if
// `exact_bytes` is not 0, asks for just that.
ReceiveRoom make_receive_room(const Socket& socket, std::size_t charged, std::size_t exact_bytes);

// Datagrams that the socket dropped: no room, or a bad checksum.
std::uint64_t datagrams_dropped(const Socket& socket);

}  // namespace pullman::nic::udp
