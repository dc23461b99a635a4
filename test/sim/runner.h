// Runs many seeds in worker processes, so that an abort costs one worker and is counted.
#pragma once

#include <cstdint>
#include <string>

#include "sim/plan.h"

namespace pullman::sim {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

struct RunnerOptions {
  SeedRange seeds;
  unsigned jobs = 1;
  DrawOptions draw;
  unsigned max_failures = 20;   // then the run stops
  unsigned hang_seconds = 120;  // a seed that takes longer is stuck
  std::string program;          // to print the command that replays a failure
};

// Prints each failure, then "N seeds, M failed". Returns M.
std::uint64_t run_seeds(const RunnerOptions& options);

}  // namespace pullman::sim
