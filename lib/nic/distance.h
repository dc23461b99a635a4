// The distance of a NIC from the processors that this process may run on (hwloc). Cold.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/port.h"

struct hwloc_bitmap_s;
struct hwloc_topology;

namespace pullman::nic {

// Sets Device::distance, except on machines with one NUMA node and for devices of no node.
void measure_distances(std::vector<Device>& devices);

// Returns the distance from `processors` to a NUMA node: how much more memory there costs than
// local memory, as the machine reports it (10: twice as much). Returns 0 if it is near or unknown.
std::uint8_t distance_between(hwloc_topology* topology, const hwloc_bitmap_s* processors,
                              int numa_node);

// Binds the calling thread to those processors of the process that belong to a NUMA node.
// Returns false, without any effect, if it is not known which they are.
bool bind_thread_near(int numa_node);

}  // namespace pullman::nic
