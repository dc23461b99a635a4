#include "stat/source.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "shm/owned_file.h"
#include "telemetry/file.h"

namespace stat_program {
namespace {

namespace telemetry = pullman::telemetry;

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string environment_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the variable's value; empty if it is not set.
std::string value_in(const std::string& all, const std::string& variable) {
  const std::string name = variable + '=';
  std::size_t at = all.starts_with(name) ? 0 : all.find('\0' + name);
  if (at == std::string::npos) return "";
  at = all.find('=', at) + 1;
  return all.substr(at, all.find('\0', at) - at);
}

// Launchers tell a process its rank in one of these; the first that is set counts.
std::string rank_of(pid_t process) {
  const std::string all = environment_of(process);
  for (const char* const name : {"PULLMAN_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (std::string value = value_in(all, name); !value.empty()) return value;
  }
  return "";
}

}  // namespace

std::string job_of(pid_t process) {
  const std::string all = environment_of(process);
  std::string job;
  for (const char* const name :
       {"PULLMAN_RENDEZVOUS", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"}) {
    const std::string value = value_in(all, name);
    if (!value.empty()) job += std::string(name) + '=' + value + ' ';
  }
  return job;
}

std::vector<Shown> read_all(const Source& source, std::vector<std::string>& problems) {
  std::vector<Shown> out;
  for (const std::filesystem::path& path : telemetry::snapshots_in(source.folder)) {
    const pid_t process = pullman::shm::owner_of(path.filename().string())->id;
    const auto& wanted = source.processes;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(),
                                     static_cast<std::uint64_t>(process)) == wanted.end()) {
      continue;
    }
    try {
      const std::string command = first_line("/proc/" + std::to_string(process) + "/comm");
      out.push_back({telemetry::read_snapshot(path), telemetry::printable(command),
                     telemetry::printable(rank_of(process))});
    } catch (const std::runtime_error& error) {
      if (std::filesystem::exists(path)) problems.push_back(path.string() + ": " + error.what());
    }
  }
  return out;
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

double age(std::uint64_t then, std::uint64_t at) {
  return then == 0 || then > at ? 0 : static_cast<double>(at - then) / 1e9;
}

std::filesystem::path usual_folder() {
  const char* const told = std::getenv("PULLMAN_COUNTERS");
  const bool elsewhere = told != nullptr && *told != '\0' && std::string(told) != "0";
  return elsewhere ? std::filesystem::path(told) : telemetry::default_folder();
}

}  // namespace stat_program
