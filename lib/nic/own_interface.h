// The kernel's network interface that a port stands on: what drivers of such ports have in common.
//
// Threads: one at a time.
#pragma once

#include <optional>

#include "nic/link_watch.h"
#include "nic/port.h"
#include "nic/routes.h"

namespace pullman::nic {

class OwnInterface {
 public:
  // `own`: the port's address. What is no interface of the kernel's has no link that it tells of,
  // nor has the loopback.
  OwnInterface(const Device& device, const Address& own);

  Reach reach(const Address& to) const { return reach_from(device_, own_, to); }

  // Link events. `counters`: the port's. A packet that was refused is often the first sign.
  std::size_t poll(std::span<PortEvent> out, const PortCounters& counters) {
    if (!link_) return 0;
    if (counters.send_errors != send_errors_) [[unlikely]]
      link_->hurry();
    send_errors_ = counters.send_errors;
    return link_->poll(out);
  }

  // Readable when poll() has something within a few calls; -1 if it never has.
  int fd() const { return link_ ? link_->fd() : -1; }

 private:
  Device device_;  // its name is the interface's
  Address own_;
  std::optional<LinkWatch> link_;
  std::uint64_t send_errors_ = 0;  // at the last poll
};

}  // namespace pullman::nic
