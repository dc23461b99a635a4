#include "nic/own_interface.h"

#include "nic/interfaces.h"

namespace pullman::nic {

// A device may be called something else than its interface: by libfabric's providers.
OwnInterface::OwnInterface(const Device& device, const Address& own, bool link_events)
    : device_(device), own_(own) {
  const auto interfaces = list_interfaces();
  const Interface* const found = find_interface(interfaces, device.name, own);
  if (found == nullptr || found->loopback) return;
  device_.name = found->name;
  if (link_events) link_.emplace(found->name, own);
}

}  // namespace pullman::nic
