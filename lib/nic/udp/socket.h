// Opens and configures kernel UDP sockets for this driver. Knows nothing of packets. Cold: once per
// port.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nic/address.h"
#include "nic/socket.h"

namespace pullman::nic::udp {

// Opens a non-blocking socket tied to `own` (port 0: any free one), whose datagrams are never
// fragmented on the way, with errors of the network reported. Throws NicError; `device` is for its
// text.
Socket open_socket(const Address& own, const std::string& device);

// The sockets of one address and port.
struct Sockets {
  Socket main;
  Socket by_others;  // has only the address, where `main` is bound to the device; else fd() is -1
};

// Does what open_socket() does; tied only by its address where the kernel refuses to bind to the
// device.
Sockets open_sockets(const Address& own, const std::string& device, Tie tie);

// Opens another socket at the address and port of `others`, which must be all that have them. fd()
// is -1 if the system does not allow it. No other process can bind to the port. The kernel delivers
// a packet to the socket that is connected to its sender, else to one that is bound to the device
// that it came by.
Socket open_beside(std::span<const Socket* const> others, const std::string& device, Tie tie);

// From now on the socket sends to that peer and receives only from it. Returns false if the kernel
// refuses.
bool connect_to(const Socket& socket, const sockaddr* name, socklen_t bytes);

// The kernel's offloads for many packets at once.
struct Offloads {
  bool segment = false;   // UDP_SEGMENT: one call sends many packets of one size
  bool coalesce = false;  // UDP_GRO: one call receives many packets of one size
};

// Returns those of sockets of that family, as far as the kernel tells without sending: the NIC may
// still refuse.
Offloads offloads_of(const Socket& socket);

// Returns the size of the send buffer, in the kernel's accounting.
std::size_t send_buffer_of(const Socket& socket);

// Makes room for packets that were sent and have not left the host, as far as the system grants it.
void grow_send_buffer(const Socket& socket, std::size_t bytes);

}  // namespace pullman::nic::udp
