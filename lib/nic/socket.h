// What the drivers on kernel sockets share: who owns a descriptor, and how several are waited on.
// Nothing of UDP or TCP.
#pragma once

#include <cstdint>
#include <string>

#include "nic/address.h"
#include "nic/port.h"

namespace pullman::nic {

// The address is not the interface's yet, or may not be used yet: it is down, or the network is
// being asked whether somebody has it.
class AddressNotReady : public NicError {
 public:
  using NicError::NicError;
};

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
  bool add_if_any(int descriptor) { return descriptor < 0 || add(descriptor); }
  void remove(int descriptor);
  int fd() const { return epoll_.fd(); }  // -1 if the system gave none

 private:
  Socket epoll_;
};

// How a socket belongs to its NIC.
enum class Tie : std::uint8_t {
  kAddress,  // by its address: the kernel's routes say by which NIC a packet leaves
  kDevice,  // bound to the device: what leaves, leaves by it, and what comes by another is not ours
};

// Non-blocking, bound to `own` (port 0: any free one), of that type (SOCK_DGRAM, SOCK_STREAM).
// Where the kernel refuses to bind to the device the socket is tied by its address; `device` is
// the interface's name, and for the sentence of a NicError, which this throws.
Socket open_bound(const Address& own, int type, const std::string& device, Tie tie);

// A socket that has no device yet; it may have an address. False if the kernel refuses: there is no
// such interface, or it is older than Linux 5.7 and wants a privilege.
bool bind_to_device(const Socket& socket, const std::string& device);

// The interface that the socket is bound to; 0 if to none.
int device_of(const Socket& socket);

// What leaves without a device that it is bound to does so by this one, by IPv4 or IPv6; what
// comes, comes by any. Needs no privilege. `socket` may be -1.
void send_by_device(int socket, const std::string& device);

// Where the kernel says the socket is bound; of no kind if it does not.
Address address_of(const Socket& socket);
// The same of one that is to be reached: throws NicError.
Address bound_address(const Socket& socket, const std::string& device);

// SO_BUSY_POLL; a kernel that refuses is lived with.
void set_busy_poll(const Socket& socket, unsigned microseconds);

}  // namespace pullman::nic
