// The NICs of this host, as every driver knows them, and which of them a Context would use that is
// made from the same configuration.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nic/port.h"
#include "pullman/config.h"

namespace info {

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

// `config` names the driver that is used.
Inventory take_inventory(const pullman::Config& config);

// Returns a speed as people write it; "?": it is not known.
std::string speed(std::uint32_t mbps);

}  // namespace info
