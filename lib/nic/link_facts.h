// What the kernel says of its network interfaces beyond their addresses: of what kind they are,
// what stands on what, and which lead to a default route (rtnetlink, sysfs). Cold.
#pragma once

#include <string>
#include <vector>

namespace pullman::nic {

struct LinkFacts {
  std::string name;
  std::string kind;  // "bridge", "veth", "vlan", ...; empty: of a driver that names none
  int index = 0;
  int master = 0;              // the index of the bridge or bond it is a port of; 0: none
  int lower = 0;               // of what it stands on, in this namespace: a vlan, a macvlan
  bool hardware = false;       // sysfs knows a device behind it
  bool default_route = false;  // one of the main table leaves by it
};

// Of this namespace; empty if the kernel does not say.
std::vector<LinkFacts> read_link_facts();

}  // namespace pullman::nic
