#include "info/inventory.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "nic/drivers.h"

namespace info {
namespace {

struct FreeTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

std::string cpus_of(hwloc_const_cpuset_t set) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, set) < 0) return "?";
  std::string out(text);
  std::free(text);
  return out;
}

std::map<int, std::string> cpus_of_numa_nodes() {
  std::map<int, std::string> out;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return out;
  const std::unique_ptr<hwloc_topology, FreeTopology> topology(raw);
  if (hwloc_topology_load(raw) != 0) return out;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    out[static_cast<int>(node->os_index)] = cpus_of(node->cpuset);
  }
  return out;
}

void ask_driver(const std::string& name, const pullman::Config& config, Inventory& out) {
  const bool wanted = name == config.driver;
  const auto driver = pullman::nic::make_driver(name, config.provider);
  std::vector<Device> devices = pullman::nic::devices_of(*driver);
  for (Device& device : devices) {
    if (!config.offloads && !device.offloads.empty())
      device.offloads += " (off: PULLMAN_OFFLOADS=0)";
  }
  if (!wanted) {
    for (Device& device : devices) {
      out.rows.push_back({std::move(device), false,
                          fmt::format("driver {} is used: PULLMAN_DRIVER={} would use {}",
                                      config.driver, name, name)});
    }
    return;
  }
  pullman::nic::Choice choice =
      pullman::nic::choose_devices(std::move(devices), config.nics,
                                   {.nics = config.max_nics,
                                    .addresses = pullman::nic::max_addresses(name),
                                    .least_packet = pullman::Config::kLeastPacketBytes});
  if (!choice.problem.empty()) out.problems.push_back(choice.problem);
  out.problems.insert(out.problems.end(), choice.lacks.begin(), choice.lacks.end());
  for (Device& device : choice.chosen) out.rows.push_back({std::move(device), true, ""});
  for (auto& [device, reason] : choice.not_chosen) {
    out.rows.push_back({std::move(device), false, std::move(reason)});
  }
}

}  // namespace

Inventory take_inventory(const pullman::Config& config) {
  Inventory out;
  out.cpus = cpus_of_numa_nodes();
  std::vector<std::string> names = pullman::nic::driver_names();
  if (std::find(names.begin(), names.end(), config.driver) == names.end()) {
    names.push_back(config.driver);  // its error message knows the others
  }
  for (const std::string& name : names) {
    try {
      ask_driver(name, config, out);
    } catch (const pullman::nic::NicError& error) {
      out.problems.push_back(error.what());
    }
  }
  std::stable_partition(out.rows.begin(), out.rows.end(), [](const Row& row) { return row.used; });
  return out;
}

std::string speed(std::uint32_t mbps) {
  if (mbps == 0) return "?";
  return mbps % 1000 == 0 ? fmt::format("{} Gb/s", mbps / 1000) : fmt::format("{} Mb/s", mbps);
}

}  // namespace info
