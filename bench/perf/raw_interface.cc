#include "raw_interface.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "options.h"

namespace perf {

namespace {

std::size_t mtu_of(const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int result = ::ioctl(socket, SIOCGIFMTU, &request);
  ::close(socket);
  return result == 0 ? static_cast<std::size_t>(request.ifr_mtu) : 1500;
}

}  // namespace

std::size_t RawInterface::datagram_bytes() const {
  constexpr std::size_t kMost = 65507;
  const bool ipv6 = host.find(':') != std::string::npos;
  return std::min(kMost, mtu - (ipv6 ? 48 : 28));
}

RawInterface find_raw_interface(const std::string& name_or_host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw Failure("cannot list the interfaces");
  RawInterface found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      std::array<char, NI_MAXHOST> host{};
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      (void)::getnameinfo(entry->ifa_addr, length, host.data(), host.size(), nullptr, 0,
                          NI_NUMERICHOST);
      const bool wanted = name_or_host == entry->ifa_name || name_or_host == host.data();
      if (wanted && found.name.empty()) found = {entry->ifa_name, host.data(), 0};
    }
  }
  ::freeifaddrs(list);
  if (found.name.empty()) {
    throw Failure(fmt::format("no interface has the name or address '{}'", name_or_host));
  }
  found.mtu = mtu_of(found.name);
  return found;
}

}  // namespace perf
