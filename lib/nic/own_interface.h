// The kernel's network interface that a port stands on: what drivers of such ports have in common.
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

// Another interface has an address in the subnet of the device's address `own`: without a word of
// ours the kernel may send there by that.
bool shares_subnet(const Device& device, const Address& own);

// A device may be called something else than its interface: by libfabric's providers. Its own name
// if there is no such interface.
std::string interface_name(const Device& device, const Address& own);

class OwnInterface {
 public:
  // `own`: the port's address. What is no interface of the kernel's has no link that it tells of,
  // nor has the loopback. Without `link_events` nobody asks.
  OwnInterface(const Device& device, const Address& own, bool link_events);

  Reach reach(const Address& to) const { return reach_from(device_, own_, to); }

  bool only_by_others(const Address& to) const { return nic::only_by_others(device_, own_, to); }

  // An address of this host, as far as the last poll() knew. Of link-local ones only the port's.
  bool is_own(const Address& to) const {
    return to.kind == 6 && is_link_local(to) ? same_host(own_, to) : host_.has(to);
  }

  // Link events: a system call.
  std::size_t poll(std::span<PortEvent> out) {
    if (!link_) return 0;
    const std::size_t count = link_->poll(out);
    if (link_->takes_address_news()) [[unlikely]]
      host_.read();
    return count;
  }

  // Readable when poll() has something; -1 if it never has.
  int fd() const { return link_ ? link_->fd() : -1; }

 private:
  Device device_;  // its name is the interface's
  Address own_;
  OwnAddresses host_;
  std::optional<LinkWatch> link_;
};

}  // namespace pullman::nic
