// The rails of a plan: how many NICs each host has, how they reach each other, and their faults.
// Has its own generator, so that a seed's other draws do not depend on it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/draw.h"
#include "sim/plan.h"

namespace pullman::sim {
namespace {

using nic::Reach;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kUsualNics = 4;  // at most; some plans have more

class RailDraw {
 public:
  RailDraw(Random& random, Duration work, Plan& plan) : random_(random), work_(work), plan_(plan) {}

  void hosts() {
    const std::size_t all = percent(random_, 50) ? between(random_, 2, kUsualNics) : 0;
    for (NodePlan& node : plan_.nodes) {
      const std::size_t nics = all != 0 ? all : between(random_, 1, kUsualNics);
      for (std::size_t i = 1; i < nics; ++i) node.more.push_back(nic_like(node));
      node.mbps = speed();
    }
  }

  // In some runs the last NIC of each host is a stream, the last resort: it loses no packets but
  // delays them, and for a time all datagrams may be filtered.
  void last_resorts() {
    for (NodePlan& node : plan_.nodes) {
      if (node.nics() == kUsualNics) node.more.pop_back();
      node.more.push_back({.command = node.command, .data = node.data, .mbps = node.mbps});
      node.more.back().stream = true;
    }
    const Instant start = moment();
    const Duration time = log_between(random_, milliseconds(10), seconds(3));
    for (std::uint8_t host = 0; host < plan_.hosts(); ++host) {
      for (std::uint8_t nic = 0; nic + 1u < plan_.nodes[host].nics(); ++nic) {
        filter({host, nic}, start, time);
      }
    }
  }

  // Gives hosts five to eight NICs.
  void many_nics() {
    const std::size_t nics = between(random_, kUsualNics + 1, kMaxNics);
    for (NodePlan& node : plan_.nodes) {
      const std::size_t has = percent(random_, 70) ? nics : node.nics();
      while (node.nics() < has) node.more.push_back(nic_like(node));
    }
  }

  void topology() {
    constexpr std::pair<Reach, Reach> kUsual{Reach::kDirect, Reach::kNone};
    constexpr std::pair<Reach, Reach> kOthers[] = {{Reach::kDirect, Reach::kRouted},
                                                   {Reach::kDirect, Reach::kDirect},
                                                   {Reach::kRouted, Reach::kRouted},
                                                   {Reach::kRouted, Reach::kNone}};
    const auto& drawn = percent(random_, 60) ? kUsual : kOthers[random_.below(4)];
    plan_.reach_alike = drawn.first;
    plan_.reach_across = drawn.second;
  }

  // Each wire is like that of the first NICs; some are shorter, longer or slower.
  void wires() {
    for (std::uint8_t a = 0; a < plan_.hosts(); ++a) {
      for (std::uint8_t b = 0; b < plan_.hosts(); ++b) {
        if (a != b) wires_between(a, b);
      }
    }
  }

  void befall() {
    const std::size_t troubles = percent(random_, 10) ? 0 : between(random_, 1, 6);
    for (std::size_t i = 0; i < troubles; ++i) befall_one();
  }

 private:
  std::uint32_t speed() {
    constexpr std::uint32_t kSpeeds[] = {0, 1000, 10'000, 25'000};
    return kSpeeds[random_.below(4)];
  }

  NicPlan nic_like(const NodePlan& node) {
    NicPlan nic{.command = node.command, .data = node.data, .mbps = speed()};
    if (percent(random_, 50)) {
      nic.command.packet_bytes = between(random_, 576, 1472);
      nic.data.packet_bytes = between(random_, 576, 8972);
      nic.data.bursts = nic.data.packet_bytes % 2 == 0;
    }
    if (percent(random_, 30)) nic.data.send_ns_per_kib = log_between(random_, 50, 20000);
    nic.command.resolve_failure = nic.data.resolve_failure = 0;
    return nic;
  }

  void wires_between(std::uint8_t a, std::uint8_t b) {
    for (std::uint8_t i = 0; i < plan_.nodes[a].nics(); ++i) {
      for (std::uint8_t j = 0; j < plan_.nodes[b].nics(); ++j) {
        if (i == 0 && j == 0) continue;
        WireFaults wire = plan_.wires[a][b];
        if (percent(random_, 50))
          wire.delay = log_between(random_, microseconds(1), milliseconds(2));
        if (percent(random_, 20)) wire.ns_per_kib = log_between(random_, 100, 50'000);
        plan_.rail_wires.push_back({.from = {a, i}, .to = {b, j}, .faults = wire});
      }
    }
  }

  Instant moment() { return kPlanStart + between(random_, Duration(0), work_); }
  Duration length() { return log_between(random_, microseconds(50), seconds(2)); }
  std::uint8_t any_host() { return static_cast<std::uint8_t>(random_.below(plan_.hosts())); }
  Plug any_nic() {
    const std::uint8_t host = any_host();
    return {host, static_cast<std::uint8_t>(random_.below(plan_.nodes[host].nics()))};
  }

  void befall_one() {
    switch (random_.below(8)) {
      case 0:
      case 1:
        return nic_trouble();
      case 2:
        return cut(any_nic(), any_nic(), moment(), length());
      case 3:
        return flap();
      case 4:
        return ailment({.loss = between(random_, 200'000, 400'000)});
      case 5:
        return ailment({.slower = 10});
      case 6:
        return ailment({.corrupt = plan_.nodes[0].config.checksum ? 300'000u : 0u});
      default:
        return all_down();
    }
  }

  void nic_trouble() {
    const Instant start = moment();
    plan_.nic_troubles.push_back({.at = any_nic(),
                                  .start = start,
                                  .end = start + length(),
                                  .kind = static_cast<NicTrouble::Kind>(random_.below(4))});
  }

  // Cuts one way or both.
  void cut(Plug a, Plug b, Instant start, Duration length) {
    const bool holds = percent(random_, 40);
    const auto add = [&](Plug from, Plug to) {
      plan_.partitions.push_back({.from = from.host,
                                  .to = to.host,
                                  .start = start,
                                  .end = start + length,
                                  .from_nic = from.nic,
                                  .to_nic = to.nic,
                                  .holds = holds});
    };
    add(a, b);
    if (percent(random_, 50)) add(b, a);
  }

  // Lets nothing pass from that NIC to any other.
  void filter(Plug from, Instant start, Duration time) {
    for (std::uint8_t to = 0; to < plan_.hosts(); ++to) {
      plan_.partitions.push_back({.from = from.host,
                                  .to = to,
                                  .start = start,
                                  .end = start + time,
                                  .from_nic = from.nic,
                                  .to_nic = kAnyNic});
    }
  }

  // At up to 10 Hz.
  void flap() {
    const Plug at = any_nic();
    const Duration period = log_between(random_, milliseconds(100), seconds(1));
    const Duration down = between(random_, period / 10, period * 9 / 10);
    const auto kind = percent(random_, 50) ? NicTrouble::Kind::kUnplugged : NicTrouble::Kind::kDead;
    Instant start = moment();
    for (std::size_t i = between(random_, 2, 20); i > 0; --i, start += period) {
      plan_.nic_troubles.push_back({.at = at, .start = start, .end = start + down, .kind = kind});
    }
  }

  void ailment(Ailment how) {
    how.from = any_nic();
    how.to = any_nic();
    how.start = moment();
    how.end = how.start + length();
    plan_.ailments.push_back(how);
    if (!percent(random_, 50)) return;
    std::swap(how.from, how.to);
    plan_.ailments.push_back(how);
  }

  // Cuts all rails between two hosts, sometimes for longer than the peer timeout.
  void all_down() {
    const Instant start = moment();
    const Duration time =
        percent(random_, 20) ? between(random_, seconds(10), seconds(100)) : length();
    cut({any_host(), kAnyNic}, {any_host(), kAnyNic}, start, time);
  }

  Random& random_;
  const Duration work_;
  Plan& plan_;
};

// Draws NICs that come late and addresses that change, except the first NIC's, by which hosts are
// called.
void draw_changes(std::uint64_t seed, Duration work, Plan& plan) {
  Random random(seed * 0x9E3779B97F4A7C15u + 77);
  if (!percent(random, 30)) return;
  const auto add = [&](Fault::Kind kind, std::size_t host, std::size_t nic) {
    plan.happenings.push_back({.at = kPlanStart + between(random, Duration(0), work),
                               .kind = kind,
                               .host = static_cast<std::uint8_t>(host),
                               .duration = Duration(0),
                               .nic = static_cast<std::uint8_t>(nic)});
  };
  for (std::size_t host = 0; host < plan.hosts(); ++host) {
    NodePlan& node = plan.nodes[host];
    if (node.more.empty()) continue;
    if (percent(random, 50)) node.late = between(random, 1, node.more.size());
    for (std::size_t i = 0; i < node.late; ++i) add(Fault::Kind::kJoin, host, 0);
    const std::size_t moves = percent(random, 40) ? between(random, 1, 3) : 0;
    for (std::size_t i = 0; i < moves; ++i) {
      add(Fault::Kind::kMove, host, between(random, 1, node.more.size()));
    }
  }
  std::stable_sort(plan.happenings.begin(), plan.happenings.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

std::string text_of(Plug plug) {
  return plug.nic == kAnyNic ? fmt::format("{}", plug.host)
                             : fmt::format("{}.{}", plug.host, plug.nic);
}

double us(Instant at) {
  return static_cast<double>(at.time_since_epoch().count()) / 1e3;
}

}  // namespace

void draw_rails(std::uint64_t seed, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 5);
  if (!percent(random, 50)) return;
  // Rails fail in milliseconds, not microseconds.
  if (percent(random, 70)) {
    const Duration pace = log_between(random, microseconds(50), milliseconds(3));
    for (ProgramPlan& program : plan.programs) program.pace = std::max(program.pace, pace);
  }
  const Duration work =
      plan.programs[0].pace * static_cast<Duration::rep>(plan.programs[0].operations);
  RailDraw draw(random, work, plan);
  draw.hosts();
  Random of_streams(seed * 0xD1342543DE82EF95u + 11);
  const bool last_resorts = percent(of_streams, 15);
  if (last_resorts) draw.last_resorts();
  draw.topology();
  draw.wires();
  draw.befall();
  plan.faults_end = std::max(plan.faults_end, kPlanStart + work);
  const auto last = [&](Instant end) {
    if (percent(random, 70)) plan.faults_end = std::max(plan.faults_end, end);
  };
  for (const NicTrouble& trouble : plan.nic_troubles) last(trouble.end);
  for (const Ailment& ailment : plan.ailments) last(ailment.end);
  for (const Partition& partition : plan.partitions) last(partition.end);
  draw_changes(seed, work, plan);
  const bool believed = percent(random, 50);
  for (NodePlan& node : plan.nodes) node.config.believe_addresses = believed;
  const bool sticky = percent(random, 20);
  for (NodePlan& node : plan.nodes) node.config.sticky_rails = sticky && percent(random, 70);
  if (!percent(random, 15) || last_resorts) return;
  draw.many_nics();
  draw.wires();
  draw.befall();
  for (const NicTrouble& trouble : plan.nic_troubles) last(trouble.end);
}

std::string describe_rails(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.hosts(); ++i) {
    if (plan.nodes[i].config.sticky_rails) text += fmt::format("host {}: sticky rails\n", i);
    for (std::size_t n = 0; n < plan.nodes[i].more.size(); ++n) {
      const NicPlan& nic = plan.nodes[i].more[n];
      text += fmt::format("host {}, NIC {}: packets {}/{} B, {} Mb/s{}\n", i, n + 1,
                          nic.command.packet_bytes, nic.data.packet_bytes, nic.mbps,
                          nic.stream ? ", the last resort" : "");
    }
  }
  for (const RailWire& wire : plan.rail_wires) {
    text +=
        fmt::format("wire {}>{}: delay {} us, {} ns/KiB\n", text_of(wire.from), text_of(wire.to),
                    static_cast<double>(wire.faults.delay.count()) / 1e3, wire.faults.ns_per_kib);
  }
  for (const NicTrouble& trouble : plan.nic_troubles) {
    text += fmt::format("NIC {} {} from {} us to {} us\n", text_of(trouble.at), name(trouble.kind),
                        us(trouble.start), us(trouble.end));
  }
  for (const Ailment& ailment : plan.ailments) {
    text += fmt::format(
        "wires {}>{} ail from {} us to {} us: loss {} ppm, {} times slower, "
        "corrupt {} ppm\n",
        text_of(ailment.from), text_of(ailment.to), us(ailment.start), us(ailment.end),
        ailment.loss, ailment.slower, ailment.corrupt);
  }
  return text;
}

}  // namespace pullman::sim
