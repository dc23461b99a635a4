// Opens the relay of a context (Config::relay).
#pragma once

#include <memory>
#include <vector>

#include "context/nics.h"
#include "engine/nics/nic_ports.h"
#include "pullman/config.h"
#include "relay/relay.h"

namespace pullman {

// Makes the relay, and adds its ports to those that are open, and to `nics`. Its address is that of
// the first NIC that leads out of this host. Null: Config::relay is not set, or there is no place
// for it, which the log says. Throws Error(kBadOption) if the option cannot be read.
std::unique_ptr<relay::Relay> open_relay(const Config& config, Nics& nics,
                                         std::vector<engine::NicPorts>& opened);

}  // namespace pullman
