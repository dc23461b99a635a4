// Which host this is, as its processes tell others: what has the same addresses.
#pragma once

#include <cstdint>

namespace pullman::nic {

// The same for all processes of one boot in one network namespace, and for no others but by
// chance: a hash. 0 where the system does not say.
std::uint64_t own_host();

}  // namespace pullman::nic
