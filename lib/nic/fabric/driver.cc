#include "nic/fabric/driver.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "nic/fabric/fabric_port.h"
#include "nic/fabric/facts.h"
#include "nic/fabric/handles.h"
#include "nic/fabric/signals.h"
#include "nic/interfaces.h"
#include "nic/standing.h"

namespace pullman::nic::fabric {
namespace {

constexpr std::uint32_t kApi = FI_VERSION(1, 17);

// Layers over other providers ("udp;ofi_rxd") and the retired sockets provider offer datagrams,
// too, but slower than what they use. They are used only when asked for by name.
bool worth_listing(std::string_view provider, std::string_view wanted) {
  if (!wanted.empty()) return provider == wanted;
  return provider.find(';') == std::string_view::npos && provider != "sockets";
}

// What the driver can do for a provider: leave room for its prefix, give it contexts, register
// memory. FI_SOURCE is not requested: it costs the udp provider a lock and a search per packet, and
// proves nothing.
InfoPtr hints_for(const std::string& provider) {
  InfoPtr hints(fi_allocinfo());
  if (hints == nullptr) throw NicError("no memory to ask libfabric for its devices");
  hints->caps = FI_MSG;
  hints->mode = FI_MSG_PREFIX | FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

Address address_of(const fi_info& info) {
  if (info.src_addr == nullptr) return Address{};
  const auto length = static_cast<socklen_t>(info.src_addrlen);
  if (info.addr_format == FI_SOCKADDR || info.addr_format == FI_SOCKADDR_IN ||
      info.addr_format == FI_SOCKADDR_IN6) {
    const auto address = from_sockaddr(static_cast<const sockaddr*>(info.src_addr), length);
    if (address) return with_port(*address, 0);
  }
  return from_opaque({static_cast<const std::byte*>(info.src_addr), info.src_addrlen});
}

int numa_node_of_pci(const fi_info& info) {
  if (info.nic == nullptr || info.nic->bus_attr == nullptr ||
      info.nic->bus_attr->bus_type != FI_BUS_PCI) {
    return -1;
  }
  const fi_pci_attr& pci = info.nic->bus_attr->attr.pci;
  std::ifstream in(fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.{:x}/numa_node",
                               pci.domain_id, pci.bus_id, pci.device_id, pci.function_id));
  int node = -1;
  return in >> node ? node : -1;
}

// An IP datagram must fit the interface's MTU, whatever the provider reports: the udp provider's
// 1472 is fixed, and a larger datagram would be fragmented.
std::size_t fit_mtu(std::size_t bytes, std::size_t mtu, const Address& address) {
  if (address.kind != 4 && address.kind != 6) return bytes;
  const std::size_t fits = largest_datagram(mtu, address);
  return fits != 0 ? std::min(bytes, fits) : bytes;
}

Device describe(const fi_info& info, const std::vector<Interface>& interfaces,
                const std::vector<LinkFacts>& links) {
  Device device;
  device.driver = "fabric";
  device.name = info.domain_attr->name != nullptr ? info.domain_attr->name : "";
  device.provider = info.fabric_attr->prov_name;
  device.address = address_of(info);
  device.packet_bytes = facts_of(info).payload_bytes;
  device.numa_node = numa_node_of_pci(info);
  if (info.nic != nullptr && info.nic->link_attr != nullptr) {
    device.mbps = static_cast<std::uint32_t>(info.nic->link_attr->speed / 1'000'000);
    device.up = info.nic->link_attr->state != FI_LINK_DOWN;
  }
  if (const Interface* own = find_interface(interfaces, device.name, device.address)) {
    device.packet_bytes = fit_mtu(device.packet_bytes, own->mtu, device.address);
    device.prefix_bits = prefix_bits_of(*own, device.address);
    if (device.mbps == 0) device.mbps = own->mbps;
    if (device.numa_node < 0) device.numa_node = own->numa_node;
    device.up = device.up && own->up;
    device.loopback = own->loopback;
    Judged judged = judge(links, own->name);
    device.standing = judged.standing;
    device.nature = std::move(judged.why);
  }
  return device;
}

void set_port(fi_info& info, std::uint16_t port) {
  if (port == 0 || info.src_addr == nullptr) return;
  sockaddr_storage storage;
  const socklen_t length = to_sockaddr(with_port(address_of(info), port), storage);
  if (length != 0 && length <= info.src_addrlen) std::memcpy(info.src_addr, &storage, length);
}

class FabricDriver final : public Driver {
 public:
  explicit FabricDriver(std::string provider) : provider_(std::move(provider)) {
    give_back_signals();
  }

  std::string name() const override { return "fabric"; }

  std::vector<Device> devices() override {
    const InfoPtr found = ask();
    const auto interfaces = list_interfaces();
    const auto links = read_link_facts();
    std::vector<Device> out;
    for (const fi_info* info = found.get(); info != nullptr; info = info->next) {
      if (!worth_listing(info->fabric_attr->prov_name, provider_)) continue;
      if (facts_of(*info).payload_bytes > 0) out.push_back(describe(*info, interfaces, links));
    }
    return out;
  }

  std::unique_ptr<Port> open(const Device& device, const PortOptions& options) override {
    InfoPtr info = find(device);
    // FI_SOURCE may be set without being requested (see hints_for).
    info->caps &= ~FI_SOURCE;
    info->rx_attr->caps &= ~FI_SOURCE;
    info->domain_attr->caps &= ~FI_SOURCE;
    set_port(*info, options.port);
    return std::make_unique<FabricPort>(std::move(info), device, options);
  }

 private:
  InfoPtr ask() const {
    const InfoPtr hints = hints_for(provider_);
    fi_info* found = nullptr;
    const int result = fi_getinfo(kApi, nullptr, nullptr, 0, hints.get(), &found);
    if (result != 0 && result != -FI_ENODATA) {
      throw NicError(fmt::format("libfabric cannot list its devices: {}", fi_strerror(-result)));
    }
    if (result == -FI_ENODATA && !provider_.empty()) {
      throw NicError(
          fmt::format("libfabric has no provider '{}' with datagram endpoints (FI_EP_DGRAM); "
                      "fi_info -t FI_EP_DGRAM lists those there are",
                      provider_));
    }
    return InfoPtr(found);
  }

  InfoPtr find(const Device& device) const {
    const InfoPtr found = ask();
    for (const fi_info* info = found.get(); info != nullptr; info = info->next) {
      if (device.provider != info->fabric_attr->prov_name) continue;
      if (info->domain_attr->name == nullptr || device.name != info->domain_attr->name) continue;
      if (!(address_of(*info) == device.address)) continue;
      InfoPtr copy(fi_dupinfo(info));
      if (copy != nullptr) return copy;
    }
    throw NicError(
        fmt::format("the NIC {} ({}) is gone", device.name, host_string(device.address)));
  }

  std::string provider_;
};

}  // namespace

std::unique_ptr<Driver> make_driver(const std::string& provider) {
  return std::make_unique<FabricDriver>(provider);
}

}  // namespace pullman::nic::fabric
