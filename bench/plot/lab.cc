#include "plot/lab.h"

#include <algorithm>
#include <numeric>

namespace pullman::lab {
namespace {

// Jain: 1 if all got the same, 1/n if one got all.
double fairness(const std::vector<std::uint64_t>& shares) {
  double sum = 0, squares = 0;
  for (const std::uint64_t share : shares) {
    sum += static_cast<double>(share);
    squares += static_cast<double>(share) * static_cast<double>(share);
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace

Lab::Lab(const Scenario& scenario, std::uint64_t seed)
    : flows_(scenario.flows()),
      road_(scenario.road, scenario.hosts(), scenario.senders, seed),
      taken_(flows_.size()) {
  road_.advance(kStart, [](std::size_t) {});
  for (std::size_t i = 0; i < scenario.hosts(); ++i) {
    hosts_.push_back(std::make_unique<Host>(road_, i, scenario, seed));
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto to_it = std::count_if(flows_.begin(), flows_.end(),
                                     [&](const Scenario::Flow& flow) { return flow.to == i; });
    if (to_it != 0) hosts_[i]->take(static_cast<std::size_t>(to_it), taken_);
  }
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    const auto begin = kStart + static_cast<Duration::rep>(flow) * scenario.start_every;
    hosts_[flows_[flow].from]->send_to(*hosts_[flows_[flow].to], flow, begin);
  }
  for (std::size_t i = 0; i < hosts_.size(); ++i) wakes_.push_back(hosts_[i]->wake());
}

void Lab::run_until(Instant end) {
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

double megabits(std::uint64_t bytes, Duration in) {
  return static_cast<double>(bytes) * 8e3 / static_cast<double>(in.count());
}

Outcome run(const Scenario& scenario, std::uint64_t seed) {
  Lab lab(scenario, seed);
  constexpr int kSamples = 200;
  Outcome outcome;
  std::vector<std::uint64_t> shares;
  for (int i = 1; i <= kSamples; ++i) {
    lab.run_until(kStart + scenario.duration * i / kSamples);
    const std::size_t queued = lab.road().queued();
    if (i == kSamples / 2) shares = lab.taken();
    if (i > kSamples / 2) outcome.queue_bytes += static_cast<double>(queued) * 2 / kSamples;
    outcome.deepest_queue = std::max(outcome.deepest_queue, queued);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i] = lab.taken()[i] - shares[i];
  for (std::size_t host = 0; host < scenario.hosts(); ++host) {
    const Stats stats = lab.host(host).stats();
    outcome.retransmits += stats.retransmits;
    outcome.spurious += stats.spurious_retransmits;
    outcome.timeouts += stats.timeouts;
  }
  const std::uint64_t bytes = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  outcome.goodput_mbps = megabits(bytes, scenario.duration / 2);
  outcome.fairness = fairness(shares);
  const auto [least, greatest] = std::minmax_element(shares.begin(), shares.end());
  outcome.least_share = static_cast<double>(*least) / static_cast<double>(*greatest);
  outcome.queue_drops = lab.road().queue_drops();
  outcome.socket_drops = lab.road().socket_drops();
  return outcome;
}

}  // namespace pullman::lab
