#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/verdict.h"

namespace pullman::sim {
namespace {

constexpr Duration kFinishBound = std::chrono::seconds(300);
constexpr Duration kSettleBound = std::chrono::seconds(120);
constexpr std::uint64_t kStepsPerLook = 64;

}  // namespace

Simulation::Simulation(const Plan& plan, std::FILE* trace, std::FILE* capture)
    : plan_(plan),
      trace_(trace),
      capture_(capture, plan.hosts(), plan.nodes.front().command.address_kind),
      stage_(plan.hosts(), plan.network_seed),
      ledger_(plan.attacked() ? ignored_ : stage_.findings(), excuses_),
      shared_{ledger_, excuses_, stage_.findings(), trace_, {}, {}, !plan.relayed_cuts.empty()},
      waiting_(plan.happenings.rbegin(), plan.happenings.rend()) {
  Network& network = stage_.network();
  for (std::size_t from = 0; from < plan.hosts(); ++from) {
    for (std::size_t to = 0; to < plan.hosts(); ++to) network.wire(from, to) = plan.wires[from][to];
  }
  for (const RailWire& wire : plan.rail_wires) network.wire(wire.from, wire.to) = wire.faults;
  for (const NicTrouble& trouble : plan.nic_troubles) network.trouble(trouble);
  network.ailments() = plan.ailments;
  network.set_reach(plan.reach_alike, plan.reach_across);
  if (plan.relays) {
    network.set_reach_rule([this](Endpoint from, Endpoint to) {
      if (plan_.unlinked[from.host][to.host]) return nic::Reach::kNone;
      return from.nic == to.nic ? plan_.reach_alike : plan_.reach_across;
    });
  }
  network.partitions() = plan.partitions;
  network.partitions().insert(network.partitions().end(), plan.relayed_cuts.begin(),
                              plan.relayed_cuts.end());
  network.narrowings() = plan.narrowings;
  network.noise() = plan.noise;
  network.set_refuses(plan.refuses);
  if (trace_.on() || capture_.on()) {
    network.set_observer([this](const Passing& passing) {
      if (trace_.on()) trace_.packet(passing);
      if (capture_.on()) capture_.packet(passing);
    });
  }
  excuse(plan);
  ledger_.expect_good_byes(!may_lose_good_byes());
  Random random(plan.seed + 77);
  for (std::size_t host = 0; host < plan.hosts(); ++host) {
    Node& node = stage_.add(plan.nodes[host], random.next());
    node.boot();
    shared_.addresses.push_back(node.address());
    programs_.push_back(std::make_unique<Program>(shared_, node, plan.programs[host],
                                                  plan.bad_heads, random.next()));
    node.wake_at(stage_.now());
  }
  stage_.set_program([this](Node& node) { programs_[node.host()]->run(); });
}

Simulation::~Simulation() {
  for (std::size_t host = 0; host < programs_.size(); ++host) end_process(host, true);
}

Outcome Simulation::run() {
  if (trace_.on()) trace_.note(stage_.now(), "\n" + describe(plan_));
  work();
  if (!failed()) finish();
  if (!failed()) reinstate();
  if (!failed()) settle();
  if (!failed()) check_stats();
  if (!failed()) check_blame();
  if (!failed() && plan_.leaves_first) say_last_words();
  if (!failed()) close();
  const NetworkCounters& counters = stage_.network().counters();
  return {.failure = stage_.findings().first(),
          .digest = stage_.network().digest(),
          .packets = counters.sent,
          .messages = ledger_.messages(),
          .steps = steps_};
}

// Runs until the programs have done their operations and the faults are over.
void Simulation::work() {
  const auto busy = [&] {
    return stage_.now() < plan_.faults_end || !waiting_.empty() || !reboots_.empty() ||
           !closing_.empty() ||
           std::any_of(programs_.begin(), programs_.end(),
                       [](const auto& program) { return program->has_work_left(); });
  };
  while (busy()) {
    if (!step(std::max(plan_.faults_end, stage_.now() + std::chrono::seconds(1)))) return;
  }
}

// Without faults everything accepted must arrive, or fail for a reason.
void Simulation::finish() {
  trace_.note(stage_.now(), "the faults are over; everything must finish");
  stage_.network().end_faults();
  ledger_.expect_good_byes(true);
  for (const auto& program : programs_) program->finish();
  const Instant bound = stage_.now() + kFinishBound;
  for (std::uint64_t i = 0; !failed(); ++i) {
    if (i % kStepsPerLook == 0 && all_sent_and_received()) return;
    const bool moved = step(bound);
    if (!moved || stage_.now() >= bound) {
      if (failed() || all_sent_and_received()) return;
      return did_not_finish(moved ? "the messages" : "the messages (nothing will happen any more)");
    }
  }
}

bool Simulation::all_sent_and_received() const {
  if (plan_.attacked()) return stage_.now() > plan_.faults_end + std::chrono::seconds(5);
  for (const auto& program : programs_) {
    if (program->pending_sends() != 0) return false;
  }
  return ledger_.owed(living(), false) == 0;
}

std::vector<std::uint32_t> Simulation::living() const {
  std::vector<std::uint32_t> processes;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    processes.push_back(stage_.node(host).process());
  }
  return processes;
}

void Simulation::did_not_finish(const char* what) {
  std::size_t sends = 0;
  std::size_t pending = 0;
  for (const auto& program : programs_) {
    sends += program->pending_sends();
    pending += program->pending();
  }
  if (!plan_.attacked()) ledger_.owed(living(), true);
  const std::string owed = stage_.findings().any() ? "; " + stage_.findings().first() : "";
  Findings whole;
  whole.report(fmt::format("{} did not finish: {} sends and {} operations pending{}", what, sends,
                           pending, owed));
  std::string dumps;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (stage_.node(host).alive()) dumps += stage_.node(host).engine().inspector().dump() + "\n";
  }
  stage_.findings() = {};
  stage_.findings().report(whole.first() + "\n" + dumps);
}

// With nothing to send and receive, no packet or memory may be held.
void Simulation::settle() {
  if (plan_.attacked()) return;
  // First deliver what is under way between peers that were parted, while receives are posted.
  const Instant earliest = stage_.now() + std::chrono::milliseconds(200);
  const Instant latest = stage_.now() + kSettleBound;
  while (stage_.now() < latest && (stage_.now() < earliest || !all_quiet())) {
    if (!step(stage_.now() < earliest ? earliest : latest)) break;
  }
  for (const auto& program : programs_) program->cancel_receives();
  const Instant bound = stage_.now() + kSettleBound;
  while (!failed() && !all_idle()) {
    if (!step(bound) || stage_.now() >= bound) {
      if (!failed() && !all_idle()) did_not_finish("settling");
      return;
    }
  }
}

bool Simulation::all_quiet() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    const engine::Audit audit = stage_.node(host).engine().inspector().audit();
    if (audit.packets_taken != audit.relay_probes || audit.unexpected_bytes != 0) return false;
  }
  return true;
}

bool Simulation::all_idle() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    const engine::Audit audit = stage_.node(host).engine().inspector().audit();
    if (programs_[host]->pending() != 0 || audit.packets_in_flight != audit.relay_probes ||
        audit.packets_taken != audit.relay_probes || audit.sends_pending != 0 ||
        !stage_.node(host).has_no_receives() || audit.unexpected_bytes != 0 ||
        audit.windows_in_use > audit.relay_windows) {
      return false;
    }
  }
  return true;
}

// A run in which nothing was lost or overtaken must not have a single retransmission.
// Not so with relays: a hop may drop, and what it sends again delays what lies behind.
void Simulation::check_stats() {
  if (plan_.relays) return;
  const Network& network = stage_.network();
  const NetworkCounters& counters = network.counters();
  if (counters.lost + counters.overflowed + counters.reordered + counters.damaged +
          counters.injected !=
      0) {
    return;
  }
  // A stuck NIC delays a HELLO for so long that the answer to the other end's overtakes it.
  for (const NicTrouble& trouble : plan_.nic_troubles) {
    if (trouble.kind == NicTrouble::Kind::kStuck) return;
  }
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    // Packets to a peer that has closed are lost as well.
    if (excuses_.any(static_cast<std::uint8_t>(host), {})) continue;
    const Stats stats = stage_.node(host).engine().inspector().stats();
    if (stats.retransmits != 0) {
      stage_.findings().report(fmt::format("host {} retransmitted {} packets though none was lost",
                                           host, stats.retransmits));
    }
    // The first probe on a new rail may arrive before the other end has heard of the rail, and the
    // answer to a HELLO after that was repeated by another NIC.
    const auto dropped = [&](wire::Verdict why) {
      return stats.dropped_by_reason[static_cast<std::size_t>(why)];
    };
    const std::uint64_t excused = network.nics() > 1 ? dropped(wire::Verdict::kUnknownConnection) +
                                                           dropped(wire::Verdict::kWrongState)
                                                     : 0;
    if (stats.dropped_packets != excused) {
      std::string reasons;
      for (std::size_t why = 0; why < stats.dropped_by_reason.size(); ++why) {
        if (stats.dropped_by_reason[why] == 0) continue;
        reasons += fmt::format(", {} {}", stats.dropped_by_reason[why],
                               wire::name(static_cast<wire::Verdict>(why)));
      }
      stage_.findings().report(fmt::format("host {} dropped {} packets though all were good{}",
                                           host, stats.dropped_packets, reasons));
    }
  }
}

// A BYE is repeated for half a second. Returns whether the faults can stop all repetitions.
bool Simulation::may_lose_good_byes() const {
  bool may = plan_.relays || !plan_.partitions.empty() || !plan_.nic_troubles.empty() ||
             !plan_.ailments.empty() || !plan_.happenings.empty();
  for (const auto& wires : plan_.wires) {
    for (const WireFaults& wire : wires)
      may = may || wire.loss + wire.corrupt + wire.truncate > 20'000;
  }
  return may;
}

// What a host has received when it closes counts as delivered, however its last ACKs and its BYE
// overtake each other.
void Simulation::say_last_words() {
  if (plan_.attacked()) return;
  const std::uint8_t leaver = *plan_.leaves_first;
  Node& node = stage_.node(leaver);
  programs_[leaver]->receive_again();
  excuses_.add_all(leaver, AllowedFailures::kGoodbye);
  excuses_.add_all(leaver, AllowedFailures::kRestart);
  const std::size_t before = ledger_.deliveries();
  std::size_t sent = ledger_.messages();
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (host != leaver) programs_[host]->say_last(leaver);
  }
  sent = ledger_.messages() - sent;
  const auto run_until = [&](Duration time, auto condition) {
    const Instant bound = stage_.now() + time;
    while (!failed() && !condition()) {
      if (step(bound) && stage_.now() < bound) continue;
      if (!failed() && !condition() && time == kSettleBound) did_not_finish("the last words");
      return;
    }
  };
  // Some may have lost each other without knowing it yet.
  run_until(std::chrono::seconds(2), [&] { return ledger_.deliveries() - before >= sent; });
  if (failed()) return;
  programs_[leaver]->stop();
  node.begin_close();
  run_until(kSettleBound, [&] { return node.drained(); });
  if (failed()) return;
  end_process(leaver, false);
  run_until(kSettleBound, [&] {
    return std::all_of(programs_.begin(), programs_.end(),
                       [](const auto& program) { return program->pending_sends() == 0; });
  });
}

// All that was accepted has been delivered, so nothing delays a BYE. Not so with an attacker on the
// path: a message that its closing receiver does not match is given up after the close timeout, as
// Context::close() promises.
void Simulation::close() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (!stage_.node(host).alive()) continue;
    programs_[host]->stop();
    stage_.node(host).begin_close();
  }
  const bool attacked = plan_.attacked();
  const Instant bound =
      stage_.now() + (attacked ? plan_.nodes[0].config.close_timeout : kSettleBound);
  while (!failed() && !all_drained()) {
    if (step(bound) && stage_.now() < bound) continue;
    if (!failed() && !all_drained() && !attacked) did_not_finish("closing");
    break;
  }
  if (failed()) return;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) end_process(host, false);
}

bool Simulation::all_drained() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    if (stage_.node(host).alive() && !stage_.node(host).drained()) return false;
  }
  return true;
}

}  // namespace pullman::sim
