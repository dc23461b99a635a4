#include "nic/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <memory>
#include <span>

namespace pullman::nic {
namespace {

// Reads a number from /sys/class/net/INTERFACE/FILE; `otherwise` if the file is missing or
// unreadable, as the speed of an interface without a link is.
long read_number(const std::string& interface, const char* file, long otherwise) {
  std::ifstream in("/sys/class/net/" + interface + "/" + file);
  long value = 0;
  return in >> value ? value : otherwise;
}

Interface describe(const ifaddrs& entry) {
  Interface out;
  out.name = entry.ifa_name;
  out.mtu = static_cast<std::size_t>(std::max(0L, read_number(out.name, "mtu", 0)));
  out.mbps = static_cast<std::uint32_t>(std::max(0L, read_number(out.name, "speed", 0)));
  out.numa_node = static_cast<int>(read_number(out.name, "device/numa_node", -1));
  out.up = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
  out.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  return out;
}

// Returns the number of bits set in a netmask; 0 if there is none.
std::uint8_t bits_of_mask(const sockaddr* mask, std::uint8_t kind) {
  if (mask == nullptr) return 0;
  const auto* const ipv4 = reinterpret_cast<const sockaddr_in*>(mask);
  const auto* const ipv6 = reinterpret_cast<const sockaddr_in6*>(mask);
  const std::span<const std::byte> bytes = kind == 4
                                               ? std::as_bytes(std::span(&ipv4->sin_addr, 1))
                                               : std::as_bytes(std::span(&ipv6->sin6_addr, 1));
  int bits = 0;
  for (const std::byte byte : bytes) bits += std::popcount(std::to_integer<unsigned>(byte));
  return static_cast<std::uint8_t>(bits);
}

}  // namespace

std::vector<Interface> list_interfaces() {
  std::vector<Interface> out;
  ifaddrs* head = nullptr;
  if (getifaddrs(&head) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(head, freeifaddrs);
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    auto found = std::find_if(out.begin(), out.end(), [&](const Interface& known) {
      return known.name == entry->ifa_name;
    });
    if (found == out.end()) found = out.insert(out.end(), describe(*entry));
    if (entry->ifa_addr == nullptr) continue;
    const auto address = from_sockaddr(entry->ifa_addr, sizeof(sockaddr_storage));
    if (!address) continue;
    found->addresses.push_back(*address);
    found->prefix_bits.push_back(bits_of_mask(entry->ifa_netmask, address->kind));
  }
  return out;
}

std::size_t largest_datagram(std::size_t mtu, const Address& address) {
  constexpr std::size_t kIpv4AndUdp = 20 + 8;
  constexpr std::size_t kIpv6AndUdp = 40 + 8;
  constexpr std::size_t kMost = 65535 - kIpv4AndUdp;  // limit of the IPv4 length field
  const std::size_t headers = address.kind == 4 ? kIpv4AndUdp : kIpv6AndUdp;
  return mtu > headers ? std::min(kMost, mtu - headers) : 0;
}

std::uint8_t prefix_bits_of(const Interface& interface, const Address& address) {
  for (std::size_t i = 0; i < interface.addresses.size(); ++i) {
    if (same_host(interface.addresses[i], address)) return interface.prefix_bits[i];
  }
  return 0;
}

const Interface* find_interface(const std::vector<Interface>& interfaces, const std::string& name,
                                const Address& address) {
  for (const Interface& interface : interfaces) {
    if (interface.name == name) return &interface;
  }
  for (const Interface& interface : interfaces) {
    for (const Address& own : interface.addresses) {
      if (same_host(own, address)) return &interface;
    }
  }
  return nullptr;
}

}  // namespace pullman::nic
