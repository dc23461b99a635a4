// The kernel socket under an endpoint of the udp provider. The provider has no option for the
// socket's receive buffer and no way to hand the socket out; but within a process only one socket
// can be bound to the endpoint's address, and that is how it is found. Cold: once per port.
#pragma once

#include <sys/socket.h>

#include <cstddef>

namespace pullman::nic::fabric {

// The descriptor of this process's datagram socket bound to that address; -1 if there is none, or
// no /proc to look in. It stays the endpoint's.
int find_socket(const sockaddr* address, socklen_t length);

// Asks for room for `packets` packets of `packet_bytes`, as far as net.core.rmem_max allows; never
// makes the buffer smaller. `socket` may be -1.
void grow_receive_buffer(int socket, std::size_t packets, std::size_t packet_bytes);

// Packets carry the don't-fragment bit, and what the kernel believes of a path is not asked: by
// default it would cut packets up where an ICMP message, which anybody can forge, tells it to.
void forbid_fragments(int socket);

// Full-size packets that the socket holds unread before it drops any.
std::size_t packets_held(int socket, std::size_t packet_bytes);

}  // namespace pullman::nic::fabric
