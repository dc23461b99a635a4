#include "nic/udp/driver.h"

#include "base/log.h"
#include "nic/devices.h"
#include "nic/udp/nic_features.h"
#include "nic/udp/udp_port.h"

namespace pullman::nic::udp {
namespace {

class UdpDriver final : public Driver {
 public:
  std::string name() const override { return "udp"; }

  std::vector<Device> devices() override {
    std::vector<Device> out = list_devices(name());
    for (Device& device : out) device.offloads = describe_offloads(device.name, device.address);
    return out;
  }

  std::unique_ptr<Port> open(const Device& device, const PortOptions& options) override {
    auto port = std::make_unique<UdpPort>(device, options);
    warn_if_small(device, options, port->receive_room());
    return port;
  }

 private:
  // Warns once: the ports of a NIC have the same limit.
  void warn_if_small(const Device& device, const PortOptions& options, const ReceiveRoom& room) {
    if (warned_ || room.buffer_bytes >= room.wanted_bytes) return;
    if (options.receive_buffer_bytes == 0 && room.packets >= options.receive_packets) return;
    warned_ = true;
    log().warn(
        "{}: the kernel grants a receive buffer of {} bytes ({} packets), not {}, so less can be "
        "in flight; as root: sysctl -w net.core.rmem_max={}",
        device.name, room.buffer_bytes, room.packets, room.wanted_bytes, room.wanted_bytes / 2);
  }

  bool warned_ = false;
};

}  // namespace

std::unique_ptr<Driver> make_driver() {
  return std::make_unique<UdpDriver>();
}

}  // namespace pullman::nic::udp
