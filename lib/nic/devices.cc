#include "nic/devices.h"

#include <fmt/format.h>

#include "nic/interfaces.h"
#include "nic/standing.h"

namespace pullman::nic {
namespace {

Device describe(const std::string& driver, const Interface& interface, const Address& address) {
  Device device;
  device.driver = driver;
  device.name = interface.name;
  device.address = address;
  device.prefix_bits = prefix_bits_of(interface, address);
  device.packet_bytes = largest_datagram(interface.mtu, address);
  device.mbps = interface.mbps;
  device.numa_node = interface.numa_node;
  device.up = interface.up;
  device.loopback = interface.loopback;
  return device;
}

}  // namespace

std::vector<Device> list_devices(const std::string& driver) {
  std::vector<Device> out;
  const std::vector<LinkFacts> links = read_link_facts();
  for (const Interface& interface : list_interfaces()) {
    const Judged judged = judge(links, interface.name);
    for (const Address& address : interface.addresses) {
      if (largest_datagram(interface.mtu, address) != 0) {
        out.push_back(describe(driver, interface, address));
        out.back().standing = judged.standing;
        out.back().nature = judged.why;
      }
    }
  }
  return out;
}

std::size_t packet_bytes_of(const Device& device, const PortOptions& options) {
  if (options.packet_bytes > device.packet_bytes) {
    throw NicError(fmt::format("{} carries packets of {} bytes at most, not {}", device.name,
                               device.packet_bytes, options.packet_bytes));
  }
  return options.packet_bytes != 0 ? options.packet_bytes : device.packet_bytes;
}

}  // namespace pullman::nic
