#include "nic/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace pullman::nic {
namespace {

// A number from /sys/class/net/INTERFACE/FILE; `otherwise` if the file is missing or refuses to be
// read, as the speed of an interface without a link does.
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
    if (address) found->addresses.push_back(*address);
  }
  return out;
}

std::size_t largest_datagram(std::size_t mtu, const Address& address) {
  constexpr std::size_t kIpv4AndUdp = 20 + 8;
  constexpr std::size_t kIpv6AndUdp = 40 + 8;
  constexpr std::size_t kMost = 65535 - kIpv4AndUdp;  // what an IPv4 packet's length can say
  const std::size_t headers = address.kind == 4 ? kIpv4AndUdp : kIpv6AndUdp;
  return mtu > headers ? std::min(kMost, mtu - headers) : 0;
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
