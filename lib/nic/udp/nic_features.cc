#include "nic/udp/nic_features.h"

#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "nic/port.h"
#include "nic/udp/socket.h"

namespace pullman::nic::udp {
namespace {

// Whether `ethtool -K` has switched a feature off; false if the interface does not tell.
bool is_off(const Socket& socket, const std::string& interface, std::uint32_t question) {
  ethtool_value answer{};
  answer.cmd = question;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&answer);
  return ioctl(socket.fd(), SIOCETHTOOL, &request) == 0 && answer.data == 0;
}

std::string describe(const char* option, bool known, bool off, const char* feature) {
  if (!known) return fmt::format("no {}", option);
  return off ? fmt::format("{} ({} off)", option, feature) : option;
}

}  // namespace

std::string describe_offloads(const std::string& interface, const Address& own) {
  try {
    const Socket socket = open_socket(own, interface);
    const Offloads known = offloads_of(socket);
    return fmt::format(
        "{}, {}",
        describe("UDP_SEGMENT", known.segment, is_off(socket, interface, ETHTOOL_GGSO), "gso"),
        describe("UDP_GRO", known.coalesce, is_off(socket, interface, ETHTOOL_GGRO), "gro"));
  } catch (const NicError&) {
    return "unknown";
  }
}

}  // namespace pullman::nic::udp
