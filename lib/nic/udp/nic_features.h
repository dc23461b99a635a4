// Describes, for people, the offloads of kernel and NIC for bursts. Cold.
#pragma once

#include <string>

#include "nic/address.h"

namespace pullman::nic::udp {

// Returns "UDP_SEGMENT, UDP_GRO" if all are on; otherwise tells what is off or missing.
std::string describe_offloads(const std::string& interface, const Address& own);

}  // namespace pullman::nic::udp
