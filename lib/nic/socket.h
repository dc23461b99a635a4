// What the drivers on kernel sockets share: who owns a descriptor, and how several are waited on.
// Nothing of UDP or TCP.
#pragma once

#include <string>

#include "nic/address.h"

namespace pullman::nic {

// Owns the descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  int fd() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A descriptor that becomes readable when one of several does.
class WaitSet {
 public:
  WaitSet();
  bool add(int descriptor);  // false: the system has no room for more
  void remove(int descriptor);
  int fd() const { return epoll_.fd(); }  // -1 if the system gave none

 private:
  Socket epoll_;
};

// Non-blocking, bound to `own` (port 0: any free one), of that type (SOCK_DGRAM, SOCK_STREAM).
// Throws NicError; `device` is for its sentence.
Socket open_bound(const Address& own, int type, const std::string& device);

// Where the kernel says the socket is bound.
Address address_of(const Socket& socket);

// SO_BUSY_POLL; a kernel that refuses is lived with.
void set_busy_poll(const Socket& socket, unsigned microseconds);

}  // namespace pullman::nic
