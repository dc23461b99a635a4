// The common part of drivers on kernel sockets: ownership of descriptors, and waiting for several.
// Nothing specific to UDP or TCP.
#pragma once

#include <cstdint>
#include <string>

#include "nic/address.h"
#include "nic/port.h"

namespace pullman::nic {

// The interface does not have the address yet, or may not use it yet: it is down, or duplicate
// address detection is running.
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
  bool add(int descriptor);  // false: the system refuses more
  bool add_if_any(int descriptor) { return descriptor < 0 || add(descriptor); }
  void remove(int descriptor);
  int fd() const { return epoll_.fd(); }  // -1 if the system gave none

 private:
  Socket epoll_;
};

// How a socket is tied to its NIC.
enum class Tie : std::uint8_t {
  kAddress,  // by its address: the kernel's routes choose the NIC of a packet
  kDevice,   // bound to the device: sends only by it, and receives only what came by it
};

// Opens a non-blocking socket of that type (SOCK_DGRAM, SOCK_STREAM), bound to `own` (port 0: any
// free one). Where the kernel refuses to bind to the device the socket is tied by its address.
// `device` is the interface's name, also for the text of the NicError that this throws.
Socket open_bound(const Address& own, int type, const std::string& device, Tie tie);

// Binds a socket that has no device yet, but may have an address. Returns false if the kernel
// refuses: there is no such interface, or the kernel is older than Linux 5.7 and wants a privilege.
bool bind_to_device(const Socket& socket, const std::string& device);

// Returns the interface that the socket is bound to; 0 if none.
int device_of(const Socket& socket);

// Sends packets of a socket that is not bound to a device by this one, over IPv4 or IPv6; it still
// receives by any. Needs no privilege. `socket` may be -1.
void send_by_device(int socket, const std::string& device);

// Returns the address that the socket is bound to; of no kind if the kernel does not tell.
Address address_of(const Socket& socket);
// Does the same for a socket that others must reach: throws NicError if it is unknown.
Address bound_address(const Socket& socket, const std::string& device);

// Sets SO_BUSY_POLL; a refusal is only logged.
void set_busy_poll(const Socket& socket, unsigned microseconds);

}  // namespace pullman::nic
