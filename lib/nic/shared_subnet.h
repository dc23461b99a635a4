// NICs of this host that are on one subnet, and what the kernel's settings make of them. An IPv4
// address belongs to the host, not to the NIC: by default (arp_ignore 0) every NIC on the subnet
// answers for the addresses of all, so packets for one arrive by another; and where rp_filter is 1
// nothing is taken but by the NIC that the host itself would use. IPv6 has neither. Cold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nic/interfaces.h"

namespace pullman::nic {

// What the kernel does for an interface: net.ipv4.conf.*, the greater of `all` and its own.
struct ArpSettings {
  int arp_ignore = 0;
  int rp_filter = 0;
};

ArpSettings arp_settings_of(const std::string& interface);

// The sentence about NICs with these settings, with what to set; empty if they are as they should
// be.
std::string subnet_advice(const std::vector<std::string>& names,
                          const std::vector<ArpSettings>& settings);

// One for each subnet that several interfaces, up and no loopback, have an IPv4 address in.
std::vector<std::string> subnet_advices(const std::vector<Interface>& interfaces);

}  // namespace pullman::nic
