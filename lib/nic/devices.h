// The devices of the drivers on kernel sockets: one for each address of each network interface.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

// With packets as long as the largest UDP datagram; what else is the driver's own is left empty.
std::vector<Device> list_devices(const std::string& driver);

// What a port's packets are to be at most. Throws NicError if more is wanted than the device has.
std::size_t packet_bytes_of(const Device& device, const PortOptions& options);

}  // namespace pullman::nic
