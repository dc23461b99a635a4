// The lab: the real engine over a bottleneck, in virtual time.
//
//   lab SCENARIO [SEED]    samples as CSV: one line a flow and time
//   lab --summary [NAME]   a line each scenario: what it came to
//   lab --list             the scenarios
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>

#include "plot/host.h"
#include "plot/scenario.h"

namespace pullman::lab {
namespace {

constexpr Instant kStart{std::chrono::seconds(1)};  // not 0: that might mean "never" to someone

// The hosts of a scenario, and time.
class Lab {
 public:
  Lab(const Scenario& scenario, std::uint64_t seed)
      : scenario_(scenario),
        road_(scenario.road, hosts(scenario), scenario.senders, seed),
        taken_(scenario.senders) {
    road_.advance(kStart, [](std::size_t) {});
    for (std::size_t i = 0; i < hosts(scenario); ++i) {
      hosts_.push_back(std::make_unique<Host>(road_, i, scenario, seed));
    }
    const std::size_t senders = scenario.senders;
    for (std::size_t i = senders; i < hosts_.size(); ++i) {
      hosts_[i]->take(scenario.one_receiver ? senders : 1, taken_);
    }
    for (std::size_t i = 0; i < senders; ++i) {
      const auto begin = kStart + static_cast<Duration::rep>(i) * scenario.start_every;
      hosts_[i]->send_to(*hosts_[scenario.one_receiver ? senders : senders + i], begin);
    }
    for (std::size_t i = 0; i < hosts_.size(); ++i) wakes_.push_back(hosts_[i]->wake());
  }

  void run_until(Instant end) {
    for (;;) {
      const auto first = std::min_element(wakes_.begin(), wakes_.end());
      const Instant next = std::min(*first, road_.next_event());
      if (next > end) break;
      if (*first > next) {
        road_.advance(next, [&](std::size_t host) { wakes_[host] = hosts_[host]->wake(); });
        continue;
      }
      road_.advance(next, [&](std::size_t host) { wakes_[host] = hosts_[host]->wake(); });
      const auto host = static_cast<std::size_t>(first - wakes_.begin());
      if (wakes_[host] <= next) hosts_[host]->turn(next);
      wakes_[host] = hosts_[host]->wake();
    }
    road_.advance(end, [](std::size_t) {});
  }

  const Host& sender(std::size_t flow) const { return *hosts_[flow]; }
  const std::vector<std::uint64_t>& taken() const { return taken_; }
  const Road& road() const { return road_; }

 private:
  static std::size_t hosts(const Scenario& scenario) {
    return scenario.senders + (scenario.one_receiver ? 1 : scenario.senders);
  }

  const Scenario& scenario_;
  Road road_;
  std::vector<std::uint64_t> taken_;  // bytes, by flow
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Instant> wakes_;
};

double megabits(std::uint64_t bytes, Duration in) {
  return static_cast<double>(bytes) * 8e3 / static_cast<double>(in.count());
}

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
    for (std::size_t flow = 0; flow < scenario.senders; ++flow) {
      const auto link = lab.sender(flow).link();
      fmt::print("{:.1f},{},{:.0f},{},{},{:.0f},{}\n", microseconds(at) / 1e3, flow,
                 megabits(lab.taken()[flow] - before[flow], step), link.window, lab.road().queued(),
                 microseconds(link.rtt), lab.sender(flow).stats().retransmits);
    }
    before = lab.taken();
  }
}

// Jain: 1 if all got the same, 1/n if one got all.
double fairness(const std::vector<std::uint64_t>& shares) {
  double sum = 0, squares = 0;
  for (const std::uint64_t share : shares) {
    sum += static_cast<double>(share);
    squares += static_cast<double>(share) * static_cast<double>(share);
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

// Goodput and fairness of the second half; the rest of the whole run.
void write_summary(const Scenario& scenario, std::uint64_t seed) {
  Lab lab(scenario, seed);
  constexpr int kSamples = 200;
  std::vector<std::uint64_t> shares;
  double queue = 0;
  std::size_t deepest = 0;
  for (int i = 1; i <= kSamples; ++i) {
    lab.run_until(kStart + scenario.duration * i / kSamples);
    if (i == kSamples / 2) shares = lab.taken();
    if (i > kSamples / 2) queue += static_cast<double>(lab.road().queued()) * 2 / kSamples;
    deepest = std::max(deepest, lab.road().queued());
  }
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = lab.taken()[i] - shares[i];
  std::uint64_t again = 0, spurious = 0, timeouts = 0;
  for (std::size_t flow = 0; flow < scenario.senders; ++flow) {
    const Stats stats = lab.sender(flow).stats();
    again += stats.retransmits;
    spurious += stats.spurious_retransmits;
    timeouts += stats.timeouts;
  }
  const std::uint64_t bytes = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  fmt::print("{:<15} {:8.0f} {:9.3f} {:9.0f} {:9.1f} {:8} {:8} {:8} {:8} {:8}\n", scenario.name,
             megabits(bytes, scenario.duration / 2), fairness(shares), queue / 1e3,
             static_cast<double>(deepest) / 1e3, again, spurious, timeouts,
             lab.road().queue_drops(), lab.road().socket_drops());
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
