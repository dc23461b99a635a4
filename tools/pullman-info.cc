// pullman-info: the NICs there are, which of them would be used, and why not the rest; with --peer
// the rails to a process that runs, with --check which packets get through to many.
//
// Asks every driver, and chooses as a Context would that is made from the same environment.
#include <fmt/format.h>
#include <hwloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "check_report.h"
#include "nic/drivers.h"
#include "peer_report.h"
#include "perf/key_options.h"
#include "pullman/config.h"

namespace {

using Json = nlohmann::ordered_json;
using pullman::nic::Device;

// A device and what became of it.
struct Row {
  Device device;
  bool used = false;
  std::string why_not;  // empty if it is used
};

struct Inventory {
  std::vector<Row> rows;              // those used first
  std::vector<std::string> problems;  // why no context could be made
  std::map<int, std::string> cpus;    // of each NUMA node
};

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

Json to_json(const Row& row, const Inventory& inventory) {
  const Device& device = row.device;
  Json out{{"name", device.name},
           {"driver", device.driver},
           {"provider", device.provider},
           {"address", pullman::nic::host_string(device.address)},
           {"packet_bytes", device.packet_bytes},
           {"mbps", device.mbps != 0 ? Json(device.mbps) : Json()},
           {"offloads", device.offloads.empty() ? Json() : Json(device.offloads)},
           {"numa_node", device.numa_node >= 0 ? Json(device.numa_node) : Json()},
           {"distance", device.distance},
           {"cpus", Json()},
           {"up", device.up},
           {"loopback", device.loopback},
           {"used", row.used},
           {"standing", device.nature.empty() ? Json() : Json(device.nature)},
           {"why_not", row.used ? Json() : Json(row.why_not)}};
  const auto cpus = inventory.cpus.find(device.numa_node);
  if (cpus != inventory.cpus.end()) out["cpus"] = cpus->second;
  return out;
}

void print_json(const Inventory& inventory) {
  Json out{
      {"nics", Json::array()}, {"numa_nodes", Json::array()}, {"problems", inventory.problems}};
  for (const Row& row : inventory.rows) out["nics"].push_back(to_json(row, inventory));
  for (const auto& [node, cpus] : inventory.cpus) {
    out["numa_nodes"].push_back({{"node", node}, {"cpus", cpus}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string speed(std::uint32_t mbps) {
  if (mbps == 0) return "?";
  return mbps % 1000 == 0 ? fmt::format("{} Gb/s", mbps / 1000) : fmt::format("{} Mb/s", mbps);
}

std::string used(const Row& row) {
  if (!row.used) return "no: " + row.why_not;
  return row.device.nature.empty() ? "yes" : "yes: " + row.device.nature;
}

std::vector<std::string> cells(const Row& row) {
  const Device& device = row.device;
  return {device.name,
          device.driver,
          device.provider,
          pullman::nic::host_string(device.address),
          fmt::format("{}", device.packet_bytes),
          speed(device.mbps),
          device.offloads.empty() ? "-" : device.offloads,
          device.numa_node >= 0 ? fmt::format("{}", device.numa_node) : "-",
          used(row)};
}

void print_table(const Inventory& inventory) {
  if (inventory.rows.empty()) return;  // a problem says why
  std::vector<std::vector<std::string>> lines{
      {"NIC", "driver", "provider", "address", "packet", "speed", "offloads", "NUMA", "used"}};
  for (const Row& row : inventory.rows) lines.push_back(cells(row));
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    for (std::size_t i = 0; i + 1 < line.size(); ++i) fmt::print("{:<{}}  ", line[i], widths[i]);
    fmt::print("{}\n", line.back());
  }
  for (const auto& [node, cpus] : inventory.cpus) {
    fmt::print("{}NUMA node {}: CPUs {}\n", node == inventory.cpus.begin()->first ? "\n" : "", node,
               cpus);
  }
}

void flush() {
  if (std::fflush(stdout) != 0) {
    throw std::runtime_error(fmt::format("cannot write: {}", std::strerror(errno)));
  }
}

int run(const std::string& format) {
  auto config = pullman::Config::from_environment();
  config.validate();
  config.driver = pullman::nic::driver_for(config.driver, config.provider);
  const Inventory inventory = take_inventory(config);
  if (format == "json") {
    print_json(inventory);
  } else {
    print_table(inventory);
  }
  flush();
  for (const std::string& problem : inventory.problems) {
    fmt::print(stderr, "pullman-info: {}\n", problem);
  }
  return inventory.problems.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "The NICs there are, which would be used, and why not the rest. PULLMAN_DRIVER, "
      "PULLMAN_PROVIDER and PULLMAN_NICS count as they do for every program."};
  std::string format = "table";
  app.add_option("--format", format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  PeerQuestion question;
  app.add_option("--peer", question.address,
                 "HOST:PORT of a process that runs: the rails to it, why these, and how they do");
  CheckQuestion check;
  auto* checks = app.add_option("--check", check.addresses,
                                "HOST:PORT... of processes that run: which packets get through to "
                                "each, over every rail, both ways, the smallest and the largest")
                     ->excludes("--peer");
  app.add_option("--map", check.map,
                 "FILE: what --check found, as JSON, with an entry for each peer")
      ->needs(checks);
  perf::KeyOptions keys;
  keys.add_to(app);
  unsigned patience_ms = 2000;
  app.add_option("--patience", patience_ms,
                 "ms for a peer to answer, and then for its rails; with --check for all of it")
      ->check(CLI::Range(1, 600000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    const bool asks = !question.address.empty() || !check.addresses.empty();
    if (!asks && keys.given()) {
      throw std::runtime_error("--key and --security are for --peer and --check");
    }
    if (!asks) return run(format);
    keys.apply();
    question.patience = check.patience = std::chrono::milliseconds(patience_ms);
    question.json = check.json = format == "json";
    const int code = check.addresses.empty() ? report_peer(question) : report_check(check);
    flush();
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-info: {}\n", error.what());
    return 1;
  }
}
