// How far a NIC is from the processors this process may run on (hwloc). Cold.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/port.h"

struct hwloc_bitmap_s;
struct hwloc_topology;

namespace pullman::nic {

// Sets Device::distance. Machines with one NUMA node, and devices of none, have no distances.
void measure_distances(std::vector<Device>& devices);

// From `processors` to a NUMA node: what memory there costs more than memory at home, as the
// machine says it (10: twice as much). 0 if it is near, or not known.
std::uint8_t distance_between(hwloc_topology* topology, const hwloc_bitmap_s* processors,
                              int numa_node);

}  // namespace pullman::nic
