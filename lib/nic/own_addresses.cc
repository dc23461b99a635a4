#include "nic/own_addresses.h"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "nic/prefix.h"

namespace pullman::nic {

void OwnAddresses::read() {
  ifaddrs* head = nullptr;
  if (getifaddrs(&head) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(head, freeifaddrs);
  addresses_.clear();
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const auto address = from_sockaddr(entry->ifa_addr, sizeof(sockaddr_storage));
    if (address) addresses_.push_back(with_port(*address, 0));
  }
}

bool OwnAddresses::has(const Address& address) const {
  if (is_loopback(address)) return true;
  const Address host = with_port(address, 0);
  return std::any_of(addresses_.begin(), addresses_.end(),
                     [&](const Address& own) { return same_port(own, host); });
}

}  // namespace pullman::nic
