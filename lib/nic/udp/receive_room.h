// How many packets a socket can hold unread: the buffer that the kernel grants, divided by what the
// kernel charges for a packet. Cold: once per port.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/udp/socket.h"

namespace pullman::nic::udp {

// Returns what the kernel charges a socket for a packet of that size that arrives alone: measured
// with a datagram to ourselves, or estimated if that does not arrive. Packets that come together
// are charged less.
std::size_t charged_bytes(const Address& own, std::size_t packet_bytes);

struct ReceiveRoom {
  std::size_t buffer_bytes = 0;  // SO_RCVBUF, in the kernel's accounting
  std::size_t packets = 0;       // how many are held before one is dropped
  std::size_t wanted_bytes = 0;
};

// Makes the receive buffer as large as the system grants, up to what the protocol can use; or asks
// for exactly `exact_bytes`, if that is not 0.
ReceiveRoom make_receive_room(const Socket& socket, std::size_t charged, std::size_t exact_bytes);

// Returns how many datagrams the socket dropped, for lack of room or a bad checksum.
std::uint64_t datagrams_dropped(const Socket& socket);

}  // namespace pullman::nic::udp
