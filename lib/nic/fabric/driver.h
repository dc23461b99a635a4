// The fabric driver: any libfabric provider of FI_EP_DGRAM endpoints (usnic, udp, verbs UD, efa).
#pragma once

#include <memory>
#include <string>

#include "nic/port.h"

namespace pullman::nic::fabric {

// `provider` restricts it to one libfabric provider; empty: all but those of no use (see
// driver.cc).
std::unique_ptr<Driver> make_driver(const std::string& provider);

}  // namespace pullman::nic::fabric
