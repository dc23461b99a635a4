// Identifies this host to other processes: those with the same addresses.
#pragma once

#include <cstdint>

namespace pullman::nic {

// Returns a hash that is the same for all processes of one boot in one network namespace, and
// different elsewhere but for collisions. 0 if the system does not tell.
std::uint64_t own_host();

}  // namespace pullman::nic
