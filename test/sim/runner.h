// Runs many seeds, each in a worker process, so that an abort in one costs one and is counted.
#pragma once

#include <cstdint>
#include <string>

namespace pullman::sim {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

struct RunnerOptions {
  SeedRange seeds;
  unsigned jobs = 1;
  bool one_rail = false;        // the plans with one NIC in each host
  unsigned max_failures = 20;   // then it stops
  unsigned hang_seconds = 120;  // of one seed: it is stuck
  std::string program;          // to print the command that replays a failure
};

// Prints each failure, then "N seeds, M failed". Returns M.
std::uint64_t run_seeds(const RunnerOptions& options);

}  // namespace pullman::sim
