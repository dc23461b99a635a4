// Which devices to use, of those there are; and why not the others. Pure: it is told everything.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

// How much may be chosen. A NIC is all devices of one name: one for each of its addresses.
struct Most {
  std::size_t nics = 4;
  std::size_t addresses = 2;     // of one NIC
  std::size_t devices = 8;       // of all; as many NICs as there are not yet may still come
  std::size_t least_packet = 0;  // bytes that each must carry in a packet to be of use
};

struct NotChosen {
  Device device;
  std::string reason;
};

struct Choice {
  std::vector<Device> chosen;         // best first; the addresses of a NIC side by side
  std::vector<NotChosen> not_chosen;  // all the others, each with why
  std::string problem;                // why nothing is chosen; empty if something is
  std::vector<std::string> lacks;     // what was asked for and cannot be used, while something can
};

// What Config::nics means. Each of `wanted` is the name of an interface, an address, or a prefix
// ("10.0.0.0/8"); one that begins with "!" excludes. What is asked for first comes first; if
// nothing is, all that is not excluded is asked for.
//
// What several devices answer to comes in the order of standing, distance, speed and name. NICs
// that bypass the kernel leave the others out; what is within the host (a bridge, its ports, a
// tunnel), and loopback, are used only if there is nothing else, or if asked for by name or
// address. What is asked for and is down, or carries too short packets, is left out if something
// else that is asked for can be used: a job begins with the NICs that are left. A NIC is used by
// its first IPv4 and its first IPv6 address, then by its others, in turn with other NICs while
// there is room; by a link-local one if it has no other and its name is asked for, or if that
// address is.
Choice choose_devices(const std::vector<Device>& devices, const std::vector<std::string>& wanted,
                      const Most& most);

// At so many addresses of a NIC a driver's ports are opened: of those that are not the kernel's
// each would take queues of the hardware.
std::size_t max_addresses(const std::string& driver);

}  // namespace pullman::nic
