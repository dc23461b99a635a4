#include "nic/tcp/driver.h"

#include "nic/devices.h"
#include "nic/tcp/tcp_port.h"

namespace pullman::nic::tcp {
namespace {

class TcpDriver final : public Driver {
 public:
  std::string name() const override { return "tcp"; }

  // The interface's MTU does not matter: the kernel segments the stream.
  std::vector<Device> devices() override {
    std::vector<Device> out = list_devices(name());
    for (Device& device : out) {
      device.packet_bytes = kMaxPacketBytes;
      device.stream = true;
    }
    return out;
  }

  std::unique_ptr<Port> open(const Device& device, const PortOptions& options) override {
    return std::make_unique<TcpPort>(device, options);
  }
};

}  // namespace

std::unique_ptr<Driver> make_driver() {
  return std::make_unique<TcpDriver>();
}

}  // namespace pullman::nic::tcp
