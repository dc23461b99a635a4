// A socket to the kernel's network configuration (rtnetlink). Does not know the meaning of requests
// and messages. Never blocks for long; cold.
#pragma once

#include <linux/rtnetlink.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "nic/address.h"

namespace pullman::nic {

class Netlink {
 public:
  // `groups` (RTMGRP_*): the events that the kernel is to send.
  explicit Netlink(std::uint32_t groups = 0);
  ~Netlink();
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  int fd() const { return descriptor_; }  // -1 if the system gave none

  bool send(std::span<const std::byte> request) const;

  // Waits for something to receive, for a moment: the kernel answers within the request.
  bool wait() const;

  enum class Received : std::uint8_t {
    kMessages,
    kNothing,
    kLost,  // the kernel had more messages than the socket had room for
  };
  using Handler = std::function<void(const nlmsghdr&)>;

  // Receives one datagram, which contains whole messages.
  Received receive(const Handler& handle) const;

 private:
  int descriptor_;
};

// Returns the attribute of that kind behind a message's head of `head_bytes`. Empty if there is
// none.
std::span<const std::byte> attribute(const nlmsghdr& message, std::size_t head_bytes,
                                     unsigned kind);

// Returns an attribute that is nested in another one.
std::span<const std::byte> nested_attribute(std::span<const std::byte> outer, unsigned kind);

// Returns the bytes of an IP address, in the format of attributes.
std::span<const std::byte> ip_bytes(const Address& address);

}  // namespace pullman::nic
