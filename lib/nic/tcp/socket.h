// A kernel TCP socket as this driver wants it: its options, each with its meaning, and nothing of
// datagrams. Cold: once per port or connection.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "nic/address.h"
#include "nic/socket.h"

namespace pullman::nic::tcp {

// What sockets ask the system for; 0: nothing, and their buffers grow with use.
struct Buffers {
  std::size_t receive_bytes = 0;  // SO_RCVBUF
  std::size_t send_bytes = 0;     // SO_SNDBUF
  std::size_t holds_bytes = 0;    // of a stream, unread, before its sender has to stop: at least
};

// What is useful, where the system grants it. `exact_receive_bytes` of the one, if that is not 0.
Buffers choose_buffers(const Socket& like, std::size_t exact_receive_bytes);

// Listens on `own` (port 0: any free one). Throws NicError; `device` is for its sentence.
Socket open_listener(const Address& own, const std::string& device, Tie tie);

// Another one at the address and port of `first`, which is bound to its device: for what comes by
// another. fd() is -1 if the system does not allow it.
Socket listen_beside(const Socket& first);

// Of a listener: for the connections that come in, too.
void set_buffers(const Socket& socket, const Buffers& buffers);

// A connection that has come in, or none (fd() is -1 and errno says why).
Socket accept_from(const Socket& listener);

// Begins to connect, from the host address `own`, and by that device unless it is empty. fd() is -1
// if that failed at once.
Socket begin_to_connect(const Address& own, const std::string& device, const Buffers& buffers,
                        const sockaddr* to, socklen_t bytes);

// Whether the kernel connected the socket to itself: whoever connects to a port of his own host on
// which nobody listens may be given that very port.
bool is_own_echo(const Socket& socket);

// Of the other end; the port is that of the connection. Of kind 0 if there is none.
Address far_address(const Socket& socket);

// Bytes that the other end has not acknowledged.
std::size_t unacknowledged_bytes(const Socket& socket);

}  // namespace pullman::nic::tcp
