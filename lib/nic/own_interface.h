// The kernel's network interface under a port: the common part of drivers that use one.
//
// Threads: one at a time.
#pragma once

#include <optional>
#include <string>

#include "nic/link_watch.h"
#include "nic/own_addresses.h"
#include "nic/port.h"
#include "nic/prefix.h"
#include "nic/routes.h"

namespace pullman::nic {

// Whether another interface has an address in the subnet of the device's address `own`: then the
// kernel may send to that subnet by the other one, unless told not to.
bool shares_subnet(const Device& device, const Address& own);

// Returns the name of the interface, which libfabric's providers may call something else; the
// device's name if there is no such interface.
std::string interface_name(const Device& device, const Address& own);

class OwnInterface {
 public:
  // `own`: the port's address. There are no link events for the loopback, for what is not a kernel
  // interface, and without `link_events`.
  OwnInterface(const Device& device, const Address& own, bool link_events);

  Reach reach(const Address& to) const { return reach_from(device_, own_, to); }

  bool only_by_others(const Address& to) const { return nic::only_by_others(device_, own_, to); }

  // Whether it is an address of this host, as of the last poll(). Of link-local addresses only the
  // port's is.
  bool is_own(const Address& to) const {
    return to.kind == 6 && is_link_local(to) ? same_host(own_, to) : host_.has(to);
  }

  // Reports link events. A system call.
  std::size_t poll(std::span<PortEvent> out) {
    if (!link_) return 0;
    const std::size_t count = link_->poll(out);
    if (link_->takes_address_news()) [[unlikely]]
      host_.read();
    return count;
  }

  // Readable when poll() has something; -1 if it never will.
  int fd() const { return link_ ? link_->fd() : -1; }

 private:
  Device device_;  // its name is the interface's
  Address own_;
  OwnAddresses host_;
  std::optional<LinkWatch> link_;
};

}  // namespace pullman::nic
