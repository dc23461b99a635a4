#include "nic/factories.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "nic/drivers.h"
#include "sim/sim_port.h"

namespace pullman::nic::contract {
namespace {

constexpr std::uint16_t kUnresolvablePort = 4242;

Device on_host(Driver& driver, std::string_view host) {
  for (const Device& device : driver.devices()) {
    if (host_string(device.address) == host) return device;
  }
  throw std::runtime_error(fmt::format("{} has no device on {}", driver.name(), host));
}

// The stand-in reads the variable each time its devices are listed.
const char* standin_as(const char* variant) {
  setenv("PULLMAN_STANDIN", variant, 1);
  return "standin";
}

// libfabric has loaded the library already; this is another handle of it.
standin::Controls& standin_controls() {
  const auto file = std::filesystem::path(std::getenv("FI_PROVIDER_PATH")) / "libstandin-fi.so";
  void* library = dlopen(file.c_str(), RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, "standin_controls") : nullptr;
  if (found == nullptr) throw std::runtime_error("no stand-in provider at " + file.string());
  return *reinterpret_cast<standin::Controls* (*)()>(found)();
}

}  // namespace

Loopback::Loopback(std::unique_ptr<Driver> driver, const char* host)
    : driver_(std::move(driver)), device_(on_host(*driver_, host)) {}

std::unique_ptr<Port> Loopback::open(const PortOptions& options) {
  return driver_->open(device_, options);
}

Address Loopback::unresolvable() {
  return with_port(device_.address, 0);
}

void Loopback::pass_time() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

FabricFactory::FabricFactory(const char* provider)
    : Loopback(make_driver("fabric", provider), "127.0.0.1") {}

Kernel::Kernel(const char* host) : Loopback(make_driver("udp", ""), host) {}

Tcp::Tcp(const char* host) : Loopback(make_driver("tcp", ""), host) {}

std::unique_ptr<Port> TcpTiny::open(const PortOptions& options) {
  PortOptions tiny = options;
  tiny.receive_buffer_bytes = 4096;
  return Tcp::open(tiny);
}

std::unique_ptr<Port> KernelPlain::open(const PortOptions& options) {
  PortOptions plain = options;
  plain.offloads = false;
  return Kernel::open(plain);
}

std::unique_ptr<Port> KernelTiny::open(const PortOptions& options) {
  PortOptions tiny = options;
  tiny.receive_buffer_bytes = 4096;
  return Kernel::open(tiny);
}

Standin::Standin(const char* variant)
    : FabricFactory(standin_as(variant)), controls(standin_controls()) {
  controls.orders = {};
  controls.tallies = {};
  controls.count_faults = true;
}

Address Standin::unresolvable() {
  orders().unresolvable_port = kUnresolvablePort;
  return with_port(device().address, kUnresolvablePort);
}

std::string Standin::complaint() {
  if (tallies().faults != 0) {
    return fmt::format("{} faults, first: {}", tallies().faults, tallies().first_fault);
  }
  if (controls.open_objects != 0) {
    return fmt::format("{} objects were left open", controls.open_objects);
  }
  return "";
}

std::unique_ptr<Port> Simulated::open(const PortOptions& options) {
  sim::PortPlan plan;
  if (options.packet_bytes != 0) plan.packet_bytes = options.packet_bytes;
  plan.receive_packets = options.receive_packets;
  plan.send_queue = options.send_packets;
  plan.send_ns_per_kib = 1000;
  return network_.open({next_host_++, sim::Channel::kData}, plan);
}

Address Simulated::unresolvable() {
  return sim::address_of({kHosts + 1, sim::Channel::kData});
}

void Simulated::pass_time() {
  network_.advance(network_.now() + std::chrono::microseconds(10));
}

}  // namespace pullman::nic::contract
