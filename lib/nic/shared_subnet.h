// NICs of this host on one subnet, and how the kernel's settings affect them. An IPv4 address
// belongs to the host, not to the NIC: by default (arp_ignore 0) every NIC on the subnet answers
// for the addresses of all, so packets to one arrive by another; and with rp_filter 1 packets are
// accepted only from the NIC that the host itself would send by. IPv6 has neither. Cold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nic/interfaces.h"

namespace pullman::nic {

// The kernel's settings of an interface: net.ipv4.conf.*, the greater of `all` and its own.
struct ArpSettings {
  int arp_ignore = 0;
  int rp_filter = 0;
};

ArpSettings arp_settings_of(const std::string& interface);

// Returns a sentence about NICs with these settings that tells what to set; empty if they are
// right.
std::string subnet_advice(const std::vector<std::string>& names,
                          const std::vector<ArpSettings>& settings);

// Returns one for each subnet in which several interfaces, up and not loopback, have an IPv4
// address.
std::vector<std::string> subnet_advices(const std::vector<Interface>& interfaces);

}  // namespace pullman::nic
