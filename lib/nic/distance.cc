#include "nic/distance.h"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace pullman::nic {
namespace {

// The distance of another node, if the machine does not tell.
constexpr std::uint8_t kElsewhere = 10;

struct FreeTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Topology load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

// Returns the processors that the process may run on; null if that is unknown.
Bitmap own_processors(hwloc_topology_t topology) {
  Bitmap out(hwloc_bitmap_alloc());
  if (out == nullptr) return nullptr;
  const bool known = hwloc_get_cpubind(topology, out.get(), HWLOC_CPUBIND_PROCESS) == 0;
  return known ? std::move(out) : nullptr;
}

// The latencies between NUMA nodes, as the machine reports them.
class Latencies {
 public:
  explicit Latencies(hwloc_topology_t topology) : topology_(topology) {
    unsigned count = 1;
    const unsigned long kind = HWLOC_DISTANCES_KIND_MEANS_LATENCY;
    if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &table_, kind, 0) != 0 ||
        count == 0) {
      table_ = nullptr;
    }
  }
  ~Latencies() {
    if (table_ != nullptr) hwloc_distances_release(topology_, table_);
  }
  Latencies(const Latencies&) = delete;
  Latencies& operator=(const Latencies&) = delete;

  std::uint8_t between(hwloc_obj_t from, hwloc_obj_t to) const {
    if (from == to) return 0;
    hwloc_uint64_t home = 0;
    hwloc_uint64_t away = 0;
    hwloc_uint64_t back = 0;
    if (table_ == nullptr ||
        hwloc_distances_obj_pair_values(table_, from, from, &home, &back) != 0 ||
        hwloc_distances_obj_pair_values(table_, from, to, &away, &back) != 0) {
      return kElsewhere;
    }
    // Tables may be wrong: any other node is farther than the local one.
    const hwloc_uint64_t more = away > home ? away - home : 1;
    return static_cast<std::uint8_t>(std::min<hwloc_uint64_t>(more, 255));
  }

 private:
  hwloc_topology_t topology_;
  hwloc_distances_s* table_ = nullptr;
};

}  // namespace

std::uint8_t distance_between(hwloc_topology* topology, const hwloc_bitmap_s* processors,
                              int numa_node) {
  if (numa_node < 0) return 0;
  const auto number = static_cast<unsigned>(numa_node);
  const hwloc_obj_t there = hwloc_get_numanode_obj_by_os_index(topology, number);
  if (there == nullptr) return 0;
  const Latencies latencies(topology);
  std::optional<std::uint8_t> least;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (!hwloc_bitmap_intersects(node->cpuset, processors)) continue;
    const std::uint8_t distance = latencies.between(node, there);
    least = std::min(least.value_or(distance), distance);
  }
  return least.value_or(0);
}

bool bind_thread_near(int numa_node) {
  if (numa_node < 0) return false;
  const Topology topology = load();
  const Bitmap processors = topology != nullptr ? own_processors(topology.get()) : nullptr;
  if (processors == nullptr) return false;
  const hwloc_obj_t node =
      hwloc_get_numanode_obj_by_os_index(topology.get(), static_cast<unsigned>(numa_node));
  if (node == nullptr || !hwloc_bitmap_intersects(node->cpuset, processors.get())) return false;
  hwloc_bitmap_and(processors.get(), processors.get(), node->cpuset);
  return hwloc_set_cpubind(topology.get(), processors.get(), HWLOC_CPUBIND_THREAD) == 0;
}

void measure_distances(std::vector<Device>& devices) {
  const auto on_a_node = [](const Device& device) { return device.numa_node >= 0; };
  // Loading the topology may take a tenth of a second, and mostly there is nothing to look up.
  const auto first = std::find_if(devices.begin(), devices.end(), on_a_node);
  const bool differ = std::any_of(first, devices.end(), [&](const Device& device) {
    return on_a_node(device) && device.numa_node != first->numa_node;
  });
  if (!differ) return;
  const Topology topology = load();
  const Bitmap processors = topology != nullptr ? own_processors(topology.get()) : nullptr;
  if (processors == nullptr) return;
  for (Device& device : devices)
    device.distance = distance_between(topology.get(), processors.get(), device.numa_node);
}

}  // namespace pullman::nic
