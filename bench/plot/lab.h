// The lab: the hosts of a scenario on their road, and time. What it came to is an Outcome.
//
// The real engine in virtual time: the same scenario and seed give the same outcome, on any
// machine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plot/host.h"
#include "plot/road.h"
#include "plot/scenario.h"

namespace pullman::lab {

inline constexpr Instant kStart{std::chrono::seconds(1)};  // not 0: might mean "never" to someone

class Lab {
 public:
  Lab(const Scenario& scenario, std::uint64_t seed);

  void run_until(Instant end);

  const Host& host(std::size_t number) const { return *hosts_[number]; }
  const std::vector<Scenario::Flow>& flows() const { return flows_; }
  const std::vector<std::uint64_t>& taken() const { return taken_; }
  const Road& road() const { return road_; }

 private:
  std::vector<Scenario::Flow> flows_;
  Road road_;
  std::vector<std::uint64_t> taken_;  // bytes, by flow
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Instant> wakes_;
};

// Goodput, fairness and mean queue of the second half; the rest of the whole run.
struct Outcome {
  double goodput_mbps = 0;
  double fairness = 0;     // Jain: 1 if all got the same, 1/n if one got all
  double least_share = 0;  // what the least flow got over what the greatest did
  double queue_bytes = 0;
  std::size_t deepest_queue = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t spurious = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t queue_drops = 0;
  std::uint64_t socket_drops = 0;
};
Outcome run(const Scenario& scenario, std::uint64_t seed);

double megabits(std::uint64_t bytes, Duration in);

}  // namespace pullman::lab
