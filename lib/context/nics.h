// Opens the NICs that a configuration asks for: which devices, how large their packets, on which
// ports.
//
// Every NIC has the same fixed ports (Config::port, Config::data_port), so that a peer is reached
// at any of its addresses. Throws nic::NicError. Cold.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "pullman/config.h"

namespace pullman {

// Best first; at least one.
std::vector<engine::NicPorts> open_nics(const Config& config);

}  // namespace pullman
