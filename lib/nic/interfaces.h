// The kernel's network interfaces, read from getifaddrs and sysfs at each call; cold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nic/address.h"

namespace pullman::nic {

struct Interface {
  std::string name;
  std::vector<Address> addresses;         // IPv4 and IPv6, port 0
  std::vector<std::uint8_t> prefix_bits;  // of each address; 0 unknown
  std::size_t mtu = 0;                    // 0 unknown
  std::uint32_t mbps = 0;  // 10^6 bit/s; 0 unknown (loopback, veth in some kernels, link down)
  int numa_node = -1;      // of its PCI device; -1 none or unknown
  bool up = false;         // configured up and with a carrier
  bool loopback = false;
};

std::vector<Interface> list_interfaces();

// Returns the largest UDP payload that fits an IP packet of `mtu` bytes; 0 if none does.
std::size_t largest_datagram(std::size_t mtu, const Address& address);

// Returns the prefix length of one of its addresses.
std::uint8_t prefix_bits_of(const Interface& interface, const Address& address);

// Returns the interface with that name, else the one with that address.
const Interface* find_interface(const std::vector<Interface>& interfaces, const std::string& name,
                                const Address& address);

}  // namespace pullman::nic
