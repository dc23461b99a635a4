// What the kernel reports of its network interfaces beyond their addresses: their kind, which is on
// top of which, and which lead to a default route (rtnetlink, sysfs). Cold.
#pragma once

#include <string>
#include <vector>

namespace pullman::nic {

struct LinkFacts {
  std::string name;
  std::string kind;  // "bridge", "veth", "vlan", ...; empty: its driver names none
  int index = 0;
  int master = 0;  // index of the bridge or bond that it is a port of; 0: none
  int lower = 0;   // index of the interface below a vlan or macvlan, if it is in this namespace
  bool hardware = false;       // sysfs has a device for it
  bool default_route = false;  // a default route of the main table uses it
};

// Reads those of this namespace; empty if the kernel does not answer.
std::vector<LinkFacts> read_link_facts();

}  // namespace pullman::nic
