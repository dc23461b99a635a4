// A kernel UDP socket as this driver wants it: its options, each with its meaning, and nothing of
// packets. Cold: once per port.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nic/address.h"
#include "nic/socket.h"

namespace pullman::nic::udp {

// Non-blocking, tied to `own` (port 0: any free one), datagrams never cut up on the way, errors of
// the network reported. Throws NicError; `device` is for its sentence.
Socket open_socket(const Address& own, const std::string& device);

// Of one address and port.
struct Sockets {
  Socket main;
  Socket
      by_others;  // has the address alone, where `main` is bound to the device; else its fd() is -1
};

// As open_socket(), and tied by its address alone where the kernel refuses to bind to the device.
Sockets open_sockets(const Address& own, const std::string& device, Tie tie);

// Another one at the address and port of these, which are all that have them. Its fd() is -1 if the
// system does not allow it. The port stays ours: nobody else can bind to it. The kernel gives a
// packet to the one that is connected to its sender, else to one that is bound to the device it
// came by.
Socket open_beside(std::span<const Socket* const> others, const std::string& device, Tie tie);

// From now on the socket sends to that peer and receives from nobody else. False if the kernel
// refuses.
bool connect_to(const Socket& socket, const sockaddr* name, socklen_t bytes);

// What the kernel does for many packets at once.
struct Offloads {
  bool segment = false;   // UDP_SEGMENT: one call sends many packets of one size
  bool coalesce = false;  // UDP_GRO: one call receives many packets of one size
};

// Of sockets of that family, as far as the kernel says without sending: the NIC may yet refuse.
Offloads offloads_of(const Socket& socket);

// Room for what was sent and has not left: as much, as the system grants it.
void grow_send_buffer(const Socket& socket, std::size_t bytes);

}  // namespace pullman::nic::udp
