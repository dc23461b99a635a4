// What kernel and NIC do for packets in bursts, in words for people. Cold.
#pragma once

#include <string>

#include "nic/address.h"

namespace pullman::nic::udp {

// "UDP_SEGMENT, UDP_GRO" where all is on; otherwise says what is off or missing.
std::string describe_offloads(const std::string& interface, const Address& own);

}  // namespace pullman::nic::udp
