// The driver of the kernel's TCP, for where datagrams do not get through: one device for each
// address of each network interface.
#pragma once

#include <memory>

#include "nic/port.h"

namespace pullman::nic::tcp {

std::unique_ptr<Driver> make_driver();

}  // namespace pullman::nic::tcp
