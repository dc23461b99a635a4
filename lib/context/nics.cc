#include "context/nics.h"

#include <algorithm>

#include "base/log.h"
#include "nic/drivers.h"

namespace pullman {
namespace {

// Of a tiny message, which a command packet holds.
constexpr std::size_t kTinyOverhead = 48;

nic::PortOptions port_options(const Config& config, std::uint16_t port) {
  using std::chrono::microseconds;
  const auto busy_poll = std::chrono::ceil<microseconds>(config.busy_poll);
  return {.receive_packets = config.receive_packets,
          .port = port,
          .receive_buffer_bytes = config.receive_buffer_bytes,
          .busy_poll_us = static_cast<unsigned>(busy_poll.count()),
          .offloads = config.offloads};
}

engine::NicPorts open_nic(nic::Driver& driver, const nic::Device& device, const Config& config) {
  engine::NicPorts nic{.device = device, .command = nullptr, .data = nullptr};
  if (config.packet_bytes != 0) {
    nic.device.packet_bytes = std::min(nic.device.packet_bytes, config.packet_bytes);
  }
  nic::PortOptions options = port_options(config, config.port);
  options.packet_bytes =
      std::min(std::max(Config::kLeastPacketBytes, config.tiny_bytes + kTinyOverhead),
               nic.device.packet_bytes);
  nic.command = driver.open(nic.device, options);
  nic::PortOptions data = port_options(config, config.data_port);
  data.link_events = false;  // the command channel's port tells them
  nic.data = driver.open(nic.device, data);
  return nic;
}

// A stream beside each NIC that carries datagrams, for when no datagram gets through. Its packets
// are no longer than theirs: all share one pool. Without one we do without.
void open_last_resort(const Config& config, std::vector<engine::NicPorts>& nics) {
  const auto driver = nic::make_driver("tcp", "");
  const std::vector<nic::Device> devices = driver->devices();
  const std::size_t datagrams = nics.size();
  for (std::size_t i = 0; i < datagrams && nics.size() < wire::kMaxNics; ++i) {
    const auto device = std::find_if(devices.begin(), devices.end(), [&](const nic::Device& one) {
      return one.up && nic::same_host(one.address, nics[i].device.address);
    });
    if (device == devices.end()) continue;
    nic::Device chosen = *device;
    chosen.packet_bytes = std::min(chosen.packet_bytes, nics[i].device.packet_bytes);
    try {
      nics.push_back(open_nic(*driver, chosen, config));
    } catch (const nic::NicError& error) {
      log().info("no stream on {} in case datagrams are filtered: {}", chosen.name, error.what());
    }
  }
}

nic::Most most_of(const Config& config) {
  return {.nics = config.most_nics, .addresses = 1, .least_packet = Config::kLeastPacketBytes};
}

}  // namespace

std::vector<engine::NicPorts> open_nics(const Config& config) {
  const auto driver =
      nic::make_driver(nic::driver_for(config.driver, config.provider), config.provider);
  std::vector<engine::NicPorts> nics;
  for (const nic::Device& device : nic::devices_to_use(*driver, config.nics, most_of(config))) {
    nics.push_back(open_nic(*driver, device, config));
  }
  if (config.last_resort && !nics.front().device.stream) open_last_resort(config, nics);
  return nics;
}

}  // namespace pullman
