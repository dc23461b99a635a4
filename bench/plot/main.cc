// Shows the lab: congestion control over a bottleneck, in virtual time.
//
//   lab SCENARIO [SEED]    samples as CSV: one line a flow and time
//   lab --summary [NAME]   a line each scenario: what it came to
//   lab --list             the scenarios
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "plot/lab.h"

namespace pullman::lab {
namespace {

double microseconds(Duration span) {
  return static_cast<double>(span.count()) / 1e3;
}

void write_samples(const Scenario& scenario, std::uint64_t seed) {
  Lab lab(scenario, seed);
  fmt::print("ms,flow,goodput_mbps,window,queue_bytes,rtt_us,retransmissions\n");
  const Duration step = scenario.duration / static_cast<Duration::rep>(scenario.samples);
  std::vector<std::uint64_t> before = lab.taken();
  for (std::size_t i = 1; i <= scenario.samples; ++i) {
    const Duration at = static_cast<Duration::rep>(i) * step;
    lab.run_until(kStart + at);
    for (std::size_t flow = 0; flow < lab.flows().size(); ++flow) {
      const Host& sender = lab.host(lab.flows()[flow].from);
      const auto link = sender.link(flow);
      fmt::print("{:.1f},{},{:.0f},{},{},{:.0f},{}\n", microseconds(at) / 1e3, flow,
                 megabits(lab.taken()[flow] - before[flow], step), link.window, lab.road().queued(),
                 microseconds(link.rtt), sender.stats().retransmits);
    }
    before = lab.taken();
  }
}

void write_summary(const Scenario& scenario, std::uint64_t seed) {
  const Outcome o = run(scenario, seed);
  fmt::print("{:<15} {:8.0f} {:9.3f} {:9.0f} {:9.1f} {:8} {:8} {:8} {:8} {:8}\n", scenario.name,
             o.goodput_mbps, o.fairness, o.queue_bytes / 1e3,
             static_cast<double>(o.deepest_queue) / 1e3, o.retransmits, o.spurious, o.timeouts,
             o.queue_drops, o.socket_drops);
  std::fflush(stdout);
}

int main(std::string_view what, std::string_view second) {
  const bool summary = what == "--summary";
  const std::uint64_t seed =
      second.empty() || summary ? 1 : std::strtoull(second.data(), nullptr, 10);
  if (summary) {
    fmt::print("{:<15} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "scenario", "Mb/s",
               "fairness", "queue KB", "most KB", "again", "spurious", "timeouts", "dropped",
               "overflow");
  }
  bool found = what == "--list";
  for (const Scenario& scenario : scenarios()) {
    if (what == "--list") {
      fmt::print("{:<15} {}\n", scenario.name, scenario.what);
    } else if (summary && (second.empty() || second == scenario.name)) {
      write_summary(scenario, seed);
      found = true;
    } else if (what == scenario.name) {
      write_samples(scenario, seed);
      found = true;
    }
  }
  if (!found) fmt::print(stderr, "lab SCENARIO [SEED] | --summary [SCENARIO] | --list\n");
  return found ? 0 : 2;
}

}  // namespace
}  // namespace pullman::lab

int main(int argc, char** argv) {
  return pullman::lab::main(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
}
