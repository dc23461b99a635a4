// The faults of hosts in a run, step by step, and which failures they excuse.
#include <fmt/format.h>

#include <algorithm>

#include "sim/simulation.h"

namespace pullman::sim {
namespace {

constexpr std::uint64_t kMaxSteps = 4'000'000;

}  // namespace

// Records what was done to whom. Silence excuses from a quarter of the timeout on, because a sender
// that backs off may not notice at once that it is over.
void Simulation::excuse(const Plan& plan) {
  const Duration limit = shortest_timeout() / 4;
  for (std::uint8_t a = 0; a < plan.hosts(); ++a) {
    for (std::uint8_t b = 0; b < a; ++b) {
      if (cut_for(limit, a, b, false)) excuse_silence(a, b);
      if (cut_for(limit, a, b, true)) {
        excuses_.add(a, b, AllowedFailures::kNoMeeting);
        if (!plan.need_relay(a, b)) excuse_relayed();  // their hops may not meet
      }
      const bool others = plan.nodes[a].nics() + plan.nodes[b].nics() > 2;
      const bool believed =
          plan.nodes[a].config.believe_addresses && plan.nodes[b].config.believe_addresses;
      if (others && plan.reach_across != nic::Reach::kNone && !believed) {
        excuses_.add(a, b, AllowedFailures::kTwoNames);
      }
      // One that a router reaches may be called by the relay at one end only.
      if (plan.relays && plan.reach_alike == nic::Reach::kRouted) {
        excuses_.add(a, b, AllowedFailures::kTwoNames);
      }
    }
  }
  for (std::size_t a = 0; a < plan.hosts(); ++a) {
    if (plan.nodes[a].config.max_peers < plan.hosts())
      excuses_.add_all(a, AllowedFailures::kCrowded);
    if (plan.attacked()) excuses_.add_all(a, AllowedFailures::kAttack);
    if (plan.nodes[a].command.resolve_failure + plan.nodes[a].data.resolve_failure != 0) {
      excuse_silence_of(static_cast<std::uint8_t>(a));
    }
    for (std::size_t b = 0; b < plan.hosts(); ++b) {
      if (plan.wires[a][b].loss > 150'000) {
        excuse_silence(static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b));
      }
    }
  }
}

// Of two hosts between which others may relay.
void Simulation::excuse_silence(std::uint8_t a, std::uint8_t b) {
  excuses_.add(a, b, AllowedFailures::kSilence);
  excuse_relayed();
}

// Of a host that may be a hop of others.
void Simulation::excuse_silence_of(std::uint8_t host) {
  excuses_.add_all(host, AllowedFailures::kSilence);
  excuse_relayed();
}

void Simulation::excuse_relayed() {
  for (std::uint8_t a = 0; a < plan_.hosts(); ++a) {
    for (std::uint8_t b = 0; b < a; ++b) {
      if (plan_.need_relay(a, b)) excuses_.add(a, b, AllowedFailures::kSilence);
    }
  }
}

Duration Simulation::shortest_timeout() const {
  Duration shortest = kForever;
  for (const NodePlan& node : plan_.nodes) shortest = std::min(shortest, node.config.peer_timeout);
  return shortest;
}

bool Simulation::step(Instant limit) {
  if (++steps_ > kMaxSteps) {
    did_not_finish("the run");
    return false;
  }
  while (!waiting_.empty() && waiting_.back().at <= stage_.now()) {
    happen(waiting_.back());
    waiting_.pop_back();
  }
  if (!waiting_.empty()) limit = std::min(limit, waiting_.back().at);
  for (std::size_t i = 0; i < reboots_.size();) {
    if (reboots_[i].first <= stage_.now()) {
      reboot(reboots_[i].second);
      reboots_.erase(reboots_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      limit = std::min(limit, reboots_[i++].first);
    }
  }
  for (std::size_t i = 0; i < closing_.size();) {
    Node& node = stage_.node(closing_[i].host);
    if (node.drained() || closing_[i].deadline <= stage_.now()) {
      if (!node.drained()) node.engine().close_abortively(node.local_now());
      end_process(closing_[i].host, false);
      reboot(closing_[i].host);
      closing_.erase(closing_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      limit = std::min(limit, closing_[i++].deadline);
    }
  }
  return stage_.step(limit) && !failed();
}

void Simulation::happen(const Fault& happening) {
  Node& node = stage_.node(happening.host);
  if (!node.alive() || std::any_of(closing_.begin(), closing_.end(), [&](const Closing& closing) {
        return closing.host == happening.host;
      })) {
    return;
  }
  const Instant until = stage_.now() + happening.duration;
  const bool silent = happening.duration >= shortest_timeout() / 4;
  trace_.note(stage_.now(), fmt::format("host {}: {} for {} us", happening.host,
                                        name(happening.kind), happening.duration.count() / 1000));
  switch (happening.kind) {
    case Fault::Kind::kCrash:
      excuses_.add_all(happening.host, AllowedFailures::kRestart);
      end_process(happening.host, true);
      reboots_.emplace_back(until, happening.host);
      return;
    case Fault::Kind::kClose:
      excuses_.add_all(happening.host, AllowedFailures::kGoodbye);
      excuses_.add_all(happening.host, AllowedFailures::kRestart);
      programs_[happening.host]->stop();
      node.begin_close();
      closing_.push_back(
          {happening.host, stage_.now() + plan_.nodes[happening.host].config.close_timeout});
      return;
    case Fault::Kind::kStall:
      if (silent) excuse_silence_of(happening.host);
      node.stall_until(until);
      return;
    case Fault::Kind::kJump:
      if (silent) excuse_silence_of(happening.host);
      node.jump_clock(happening.duration);
      return;
    case Fault::Kind::kJoin:
      return node.join();
    case Fault::Kind::kMove:
      return node.move(happening.nic);
    case Fault::Kind::kCorrupt:
      return node.corrupt_memory();
  }
}

void Simulation::end_process(std::uint8_t host, bool quietly) {
  Node& node = stage_.node(host);
  if (!node.alive()) return;
  node.end(quietly);
  programs_[host]->ended();
}

void Simulation::reboot(std::uint8_t host) {
  trace_.note(stage_.now(), fmt::format("host {}: boots", host));
  stage_.node(host).boot();
  programs_[host]->booted();
  stage_.node(host).wake_at(stage_.now());
}

}  // namespace pullman::sim
