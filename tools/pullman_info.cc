// pullman-info: the NICs there are, which would be used, and why not the rest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nic/drivers.h"
#include "pullman/config.h"
#include "pullman/status.h"

namespace {

using pullman::Config;
namespace nic = pullman::nic;

struct Row {
  nic::Device device;
  bool used = false;
  std::string why_not;
};

std::vector<Row> rows_of(const nic::Choice& choice) {
  std::vector<Row> rows;
  for (const nic::Device& device : choice.chosen) rows.push_back({device, true, ""});
  for (const nic::NotChosen& other : choice.not_chosen) rows.push_back({other.device, false, other.reason});
  return rows;
}

std::string or_unknown(long value) { return value <= 0 ? "-" : std::to_string(value); }

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<4} {:<14} {:<8} {:<10} {:<28} {:>7} {:>9} {:>5}  {}\n", "use", "NIC", "driver",
             "provider", "address", "packet", "Mbit/s", "NUMA", "why not");
  for (const Row& row : rows) {
    const nic::Device& d = row.device;
    fmt::print("{:<4} {:<14} {:<8} {:<10} {:<28} {:>7} {:>9} {:>5}  {}\n", row.used ? "yes" : "no",
               d.name, d.driver, d.provider.empty() ? "-" : d.provider, nic::host_string(d.address),
               d.packet_bytes, or_unknown(d.mbps), d.numa_node < 0 ? "-" : std::to_string(d.numa_node),
               row.why_not);
  }
}

void print_json(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const nic::Device& d = row.device;
    nlohmann::json line{{"nic", d.name},           {"driver", d.driver},
                        {"provider", d.provider},  {"address", nic::host_string(d.address)},
                        {"packet_bytes", d.packet_bytes}, {"mbps", d.mbps},
                        {"numa_node", d.numa_node},       {"up", d.up},
                        {"used", row.used},        {"why_not", row.why_not}};
    std::puts(line.dump().c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The NICs Pullman finds on this host, which it would use, and why not the rest."};
  std::string format = "table";
  std::vector<std::string> wanted;
  app.add_option("--format", format, "table, or json: one object per line")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--nic", wanted, "as if these were asked for (names or addresses)")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    const Config config = Config::from_environment();
    const auto driver = nic::make_driver(config.driver, config.provider);
    const nic::Choice choice =
        nic::choose_devices(driver->devices(), wanted.empty() ? config.nics : wanted);
    const auto rows = rows_of(choice);
    format == "json" ? print_json(rows) : print_table(rows);
    if (!choice.problem.empty()) fmt::print(stderr, "pullman-info: {}\n", choice.problem);
    return choice.problem.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-info: {}\n", error.what());
    return 1;
  }
}
