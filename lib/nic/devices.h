// The devices of the drivers that use kernel sockets: one for each address of each network
// interface.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

// Lists them, with packets as long as the largest UDP datagram; fields specific to a driver are
// empty.
std::vector<Device> list_devices(const std::string& driver);

// Returns the largest packet of a port. Throws NicError if the options want more than the device
// has.
std::size_t packet_bytes_of(const Device& device, const PortOptions& options);

}  // namespace pullman::nic
