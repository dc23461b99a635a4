// The kernel socket under an endpoint of the udp provider. The provider has no option for the
// socket's receive buffer and no way to get the socket; but in a process only one socket can be
// bound to the endpoint's address, and so it is found. Cold: once per port.
#pragma once

#include <sys/socket.h>

#include <cstddef>

namespace pullman::nic::fabric {

// Returns this process's datagram socket that is bound to that address; -1 if there is none, or no
// /proc to look in. It remains the endpoint's.
int find_socket(const sockaddr* address, socklen_t length);

// Asks for room for `packets` packets of `packet_bytes`, as far as net.core.rmem_max allows; never
// makes the buffer smaller. `socket` may be -1.
void grow_receive_buffer(int socket, std::size_t packets, std::size_t packet_bytes);

// Sets the don't-fragment bit and ignores the kernel's path MTU: by default the kernel would
// fragment packets when an ICMP message, which anybody can forge, tells it to.
void forbid_fragments(int socket);

// Returns how many full-size packets the socket holds unread before it drops any.
std::size_t packets_held(int socket, std::size_t packet_bytes);

}  // namespace pullman::nic::fabric
