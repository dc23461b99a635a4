// Opens and configures kernel TCP sockets for this driver. Knows nothing of datagrams. Cold: once
// per port or connection.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "nic/address.h"
#include "nic/socket.h"

namespace pullman::nic::tcp {

// Buffer sizes that sockets ask for; 0: none, and buffers grow with use.
struct Buffers {
  std::size_t receive_bytes = 0;  // SO_RCVBUF
  std::size_t send_bytes = 0;     // SO_SNDBUF
  std::size_t holds_bytes = 0;    // unread bytes of a stream that are held, at least
};

// Returns useful sizes, if the system grants them. The receive buffer is `exact_receive_bytes`,
// unless that is 0.
Buffers choose_buffers(const Socket& like, std::size_t exact_receive_bytes);

// Opens a socket that listens on `own` (port 0: any free one). Throws NicError; `device` is for its
// text.
Socket open_listener(const Address& own, const std::string& device, Tie tie);

// Opens another listener at the address and port of `first`, which is bound to its device, for
// connections that come by other NICs. fd() is -1 if the system does not allow it.
Socket listen_beside(const Socket& first);

// Sets the buffers of a listener, and so of the connections that it accepts.
void set_buffers(const Socket& socket, const Buffers& buffers);

// Accepts a connection; if there is none fd() is -1 and errno tells why.
Socket accept_from(const Socket& listener);

// Begins to connect from the host address `own`, by that device unless it is empty. fd() is -1 if
// that failed at once.
Socket begin_to_connect(const Address& own, const std::string& device, const Buffers& buffers,
                        const sockaddr* to, socklen_t bytes);

// Whether the kernel connected the socket to itself: a connection to a port of our own host on
// which nobody listens may be given that very port as its own.
bool is_own_echo(const Socket& socket);

// Returns the remote address, with the port of the connection. Of kind 0 if there is none.
Address far_address(const Socket& socket);

// Returns how many bytes the remote end has not acknowledged.
std::size_t unacknowledged_bytes(const Socket& socket);

}  // namespace pullman::nic::tcp
