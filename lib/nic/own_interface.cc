#include "nic/own_interface.h"

#include <algorithm>

#include "nic/interfaces.h"
#include "nic/prefix.h"

namespace pullman::nic {
namespace {

bool has_address_in(const Interface& interface, const Prefix& subnet) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [&](const Address& address) { return contains(subnet, address); });
}

}  // namespace

bool shares_subnet(const Device& device, const Address& own) {
  const auto interfaces = list_interfaces();
  const Interface* const found = find_interface(interfaces, device.name, own);
  if (found == nullptr || found->loopback) return false;
  const std::uint8_t bits = prefix_bits_of(*found, own);
  return bits != 0 && std::any_of(interfaces.begin(), interfaces.end(), [&](auto& other) {
           return other.name != found->name && has_address_in(other, {own, bits});
         });
}

std::string interface_name(const Device& device, const Address& own) {
  const auto interfaces = list_interfaces();
  const Interface* const found = find_interface(interfaces, device.name, own);
  return found != nullptr ? found->name : device.name;
}

OwnInterface::OwnInterface(const Device& device, const Address& own, bool link_events)
    : device_(device), own_(own) {
  const auto interfaces = list_interfaces();
  const Interface* const found = find_interface(interfaces, device.name, own);
  if (found == nullptr || found->loopback) return;
  device_.name = found->name;
  if (link_events) link_.emplace(found->name, own);
}

}  // namespace pullman::nic
