// The driver of the kernel's UDP sockets: one device for each address of each network interface.
#pragma once

#include <memory>

#include "nic/port.h"

namespace pullman::nic::udp {

std::unique_ptr<Driver> make_driver();

}  // namespace pullman::nic::udp
