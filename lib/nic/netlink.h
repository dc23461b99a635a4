// A socket to the kernel's network configuration (rtnetlink), as bytes: what is asked and what the
// kernel tells is for others to know. Never blocks for long; cold.
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
  // `groups` (RTMGRP_*): of what the kernel is to tell unasked.
  explicit Netlink(std::uint32_t groups = 0);
  ~Netlink();
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  int fd() const { return descriptor_; }  // -1 if the system gave none

  bool send(std::span<const std::byte> request) const;

  // Waits for something to receive, for a moment: the kernel answers while it is asked.
  bool wait() const;

  enum class Received : std::uint8_t {
    kMessages,
    kNothing,
    kLost,  // the kernel had more to tell than there was room for
  };
  using Handler = std::function<void(const nlmsghdr&)>;

  // One datagram, whose messages are whole.
  Received receive(const Handler& handle) const;

 private:
  int descriptor_;
};

// What follows a message's head: attributes, found by their kind. Empty if there is none.
std::span<const std::byte> attribute(const nlmsghdr& message, std::size_t head_bytes,
                                     unsigned kind);

// The same among the attributes that another one is made of.
std::span<const std::byte> nested_attribute(std::span<const std::byte> outer, unsigned kind);

// The bytes of an IP address, as attributes have them.
std::span<const std::byte> ip_bytes(const Address& address);

}  // namespace pullman::nic
