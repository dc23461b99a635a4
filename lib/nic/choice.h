// Decides which of the devices are used, and why the others are not. Pure: everything is passed in.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

// Limits of the choice. A NIC is all devices of one name: one for each of its addresses.
struct Most {
  std::size_t nics = 4;
  std::size_t addresses = 2;     // of one NIC
  std::size_t devices = 8;       // in all, less as many as the NICs that may still be added
  std::size_t least_packet = 0;  // bytes that a device must carry in a packet to be usable
};

struct NotChosen {
  Device device;
  std::string reason;
};

struct Choice {
  std::vector<Device> chosen;         // best first; the addresses of a NIC are adjacent
  std::vector<NotChosen> not_chosen;  // all others, each with the reason
  std::string problem;                // why nothing is chosen; empty if something is
  std::vector<std::string> lacks;  // NICs that were asked for and cannot be used, while others can
};

// Chooses what Config::nics means. Each of `wanted` is the name of an interface, an address, or a
// prefix ("10.0.0.0/8"); one that begins with "!" excludes. Items named first come first; without
// any, everything that is not excluded is wanted.
//
// Devices that match one item are ordered by standing, distance, speed and name. If NICs bypass the
// kernel the others are left out. Interfaces within the host (a bridge, its ports, a tunnel) and
// the loopback are used only if there is nothing else, or if asked for by name or address. A NIC
// that is asked for, but is down or carries too short packets, is left out if another that is asked
// for can be used: a job starts with the remaining NICs. A NIC is used by its first IPv4 and its
// first IPv6 address, then by its others, in turn with other NICs while there is room. A link-local
// address is used if it is asked for, or if its NIC has no other and is asked for by name.
Choice choose_devices(const std::vector<Device>& devices, const std::vector<std::string>& wanted,
                      const Most& most);

// Returns at how many addresses of a NIC a driver's ports are opened. Where they are not kernel
// sockets each would take hardware queues.
std::size_t max_addresses(const std::string& driver);

}  // namespace pullman::nic
