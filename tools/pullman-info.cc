// pullman-info: the NICs there are, which of them would be used, and why not the rest; with --peer
// the rails to a process that runs, with --check which packets get through to many.
//
// Asks every driver, and chooses as a Context would that is made from the same environment.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "check_report.h"
#include "info/drawing.h"
#include "info/host_picture.h"
#include "info/inventory.h"
#include "info/job_picture.h"
#include "nic/drivers.h"
#include "peer_report.h"
#include "perf/key_options.h"
#include "pullman/config.h"

namespace {

using Json = nlohmann::ordered_json;
using info::Device;
using info::Inventory;
using info::Row;

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
          info::speed(device.mbps),
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

pullman::Config config_here() {
  auto config = pullman::Config::from_environment();
  config.validate();
  config.driver = pullman::nic::driver_for(config.driver, config.provider);
  return config;
}

void draw_host(const std::string& file, const info::PeerRails& to) {
  const pullman::Config config = config_here();
  info::draw(info::host_picture(info::take_inventory(config), config.driver, to), file);
}

void draw_job(const std::string& file, const std::vector<std::string>& maps) {
  std::vector<nlohmann::json> all;
  for (const std::string& map : maps) all.push_back(info::read_map(map));
  info::draw(info::job_picture(all), file);
}

int run(const std::string& format) {
  const Inventory inventory = info::take_inventory(config_here());
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
  std::string svg;
  auto* picture = app.add_option("--svg", svg,
                                 "FILE: a picture of NICs and NUMA nodes, with --peer also of the "
                                 "rails; with --check or --maps a heat map. Needs Graphviz");
  std::vector<std::string> maps;
  app.add_option("--maps", maps,
                 "FILE... that --map wrote on the hosts of a job: drawn as one heat map by --svg")
      ->needs(picture)
      ->excludes("--peer")
      ->excludes("--check");
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
    if (!maps.empty()) {
      draw_job(svg, maps);
      return 0;
    }
    if (!asks) {
      if (!svg.empty()) draw_host(svg, {});
      return run(format);
    }
    keys.apply();
    question.patience = check.patience = std::chrono::milliseconds(patience_ms);
    question.json = check.json = format == "json";
    info::PeerRails seen{.peer = question.address, .rails = {}};
    check.svg = svg;
    const int code =
        check.addresses.empty() ? report_peer(question, seen.rails) : report_check(check);
    if (!svg.empty() && check.addresses.empty()) draw_host(svg, seen);
    flush();
    return code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-info: {}\n", error.what());
    return 1;
  }
}
