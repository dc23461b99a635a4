// The contexts of this host that show their counters, and what the system says of their processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "telemetry/snapshot.h"

namespace stat_program {

struct Shown {
  pullman::telemetry::Snapshot snapshot;
  std::string command;  // the name of the process
  std::string rank;     // in its job, if a launcher has told it one
};

struct Source {
  std::filesystem::path folder;
  std::vector<std::uint64_t> processes{};  // only these; empty: all
};

// Reads all contexts. What cannot be read is described in `problems`.
std::vector<Shown> read_all(const Source& source, std::vector<std::string>& problems);

// Returns what the processes of one job have in their environment, and no process of another; empty
// if there is no such thing.
std::string job_of(pid_t process);

// Returns the time now as the snapshots count it (CLOCK_MONOTONIC, ns).
std::uint64_t now();

// Returns the seconds since then; 0 if it was never.
double age(std::uint64_t then, std::uint64_t at);

// Returns where contexts of this user show their counters, as the environment says.
std::filesystem::path usual_folder();

}  // namespace stat_program
