#include "sim/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/draw.h"
#include "wire/protection.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Which kinds of trouble a seed has: each in about a quarter of the seeds, none in one of eight.
struct Troubles {
  bool loss, duplicates, reordering, damage, slow, partitions, noise, crashes, stalls, jumps, crowd,
      disconnects, tiny_ports, poor_nics;

  explicit Troubles(Random& random) {
    const std::uint64_t often = percent(random, 12) ? 0 : 25;
    for (bool* trouble : {&loss, &duplicates, &reordering, &damage, &slow, &partitions, &noise,
                          &stalls, &tiny_ports, &poor_nics}) {
      *trouble = percent(random, often);
    }
    for (bool* trouble : {&crashes, &jumps, &crowd, &disconnects}) {
      *trouble = percent(random, often / 2);
    }
  }
};

Config draw_config(Random& random, const Troubles& troubles, std::size_t hosts) {
  Config config;
  config.max_peers = troubles.crowd ? between(random, 1, hosts) : between(random, hosts + 2, 64);
  config.tiny_bytes = percent(random, 60) ? 768 : between(random, 0, 1024);
  config.eager_bytes = percent(random, 50) ? 64 * 1024 : log_between(random, 1024, 1 << 20);
  config.send_window = percent(random, 50) ? 4096 : log_between(random, 16, 4096);
  config.send_packets = percent(random, 50) ? 16384 : log_between(random, 64, 16384);
  config.unexpected_bytes =
      percent(random, 40) ? 256u << 20 : log_between(random, 4096 * config.max_peers, 4 << 20);
  config.ack_packets = percent(random, 60) ? 256 : log_between(random, 1, 1024);
  if (percent(random, 20)) config.ack_delay = between(random, Duration(0), milliseconds(8));
  if (percent(random, 20)) config.pto_initial = log_between(random, milliseconds(1), seconds(2));
  if (percent(random, 20)) config.pto_min = log_between(random, microseconds(100), seconds(1));
  config.peer_timeout = between(random, seconds(30), seconds(60));
  config.close_timeout = seconds(20);
  return config;
}

PortPlan draw_port(Random& random, const Troubles& troubles, std::size_t largest) {
  PortPlan port;
  port.packet_bytes =
      percent(random, 50) ? std::min<std::size_t>(largest, 1472) : between(random, 576, largest);
  port.bursts = port.packet_bytes % 2 == 0;
  port.receive_packets = troubles.tiny_ports ? log_between(random, 16, 256) : 4096;
  port.send_queue = troubles.tiny_ports ? log_between(random, 4, 256) : 4096;
  if (percent(random, 50)) port.send_ns_per_kib = log_between(random, 50, 20000);
  port.resolve_delay =
      percent(random, 50) ? Duration(0) : log_between(random, microseconds(1), milliseconds(50));
  if (troubles.poor_nics) {
    port.send_error = log_between(random, 100, 50'000);
    if (percent(random, 30)) port.resolve_failure = log_between(random, 1000, 200'000);
  }
  return port;
}

NodePlan draw_node(Random& random, const Troubles& troubles, std::size_t hosts) {
  NodePlan node;
  node.config = draw_config(random, troubles, hosts);
  node.command = draw_port(random, troubles, 1472);
  node.data = draw_port(random, troubles, 8972);
  node.config.receive_packets = std::min<std::size_t>(node.data.receive_packets, 65536);
  node.turn_gap = log_between(random, nanoseconds(300), microseconds(5));
  if (troubles.stalls && percent(random, 20)) {
    node.poll_interval = log_between(random, microseconds(100), milliseconds(50));
    node.polls_once = percent(random, 50);
  }
  return node;
}

WireFaults draw_wire(Random& random, const Troubles& troubles) {
  WireFaults wire;
  wire.delay = log_between(random, microseconds(1), milliseconds(2));
  wire.data_delay = percent(random, 50) ? Duration(0) : between(random, Duration(0), wire.delay);
  wire.jitter = percent(random, 50) ? Duration(0) : between(random, Duration(0), wire.delay * 2);
  if (troubles.loss) wire.loss = log_between(random, 100, percent(random, 10) ? 500'000 : 120'000);
  if (troubles.duplicates) wire.duplicate = log_between(random, 1000, 300'000);
  if (troubles.reordering) {
    wire.reorder = log_between(random, 1000, 300'000);
    wire.reorder_by = log_between(random, microseconds(1), milliseconds(1));
  }
  if (troubles.damage) {
    wire.truncate = log_between(random, 100, 20'000);
    wire.corrupt = log_between(random, 100, 20'000);
  }
  if (troubles.slow) {
    wire.ns_per_kib = log_between(random, 100, 50'000);
    wire.queue = log_between(random, microseconds(500), milliseconds(20));
  }
  return wire;
}

void draw_programs(Random& random, const Troubles& troubles, Plan& plan) {
  ProgramPlan program;
  program.operations = log_between(random, 10, 3000) / plan.hosts() + 5;
  program.pace = log_between(random, nanoseconds(500), microseconds(500));
  program.max_message = percent(random, 3)    ? log_between(random, 1 << 20, 4 << 20)
                        : percent(random, 30) ? log_between(random, 4096, 256 << 10)
                                              : log_between(random, 16, 16 << 10);
  if (program.max_message >= 1 << 20) program.operations = 10;
  program.max_pending = program.max_message >= 1 << 20 ? 4 : log_between(random, 4, 64);
  program.labels = percent(random, 50) ? between(random, 1, 4) : 60000;
  program.disconnect_weight = troubles.disconnects ? 2 : 0;
  for (std::size_t host = 0; host < plan.hosts(); ++host) {
    program.late_receives = percent(random, 20);
    program.receive_weight = between(random, 20, 50);
    plan.programs.push_back(program);
  }
}

// Draws a moment while the programs work.
Instant moment(Random& random, Duration work) {
  return kPlanStart + between(random, Duration(0), work);
}

void draw_partitions(Random& random, Duration work, Plan& plan) {
  const std::size_t count = between(random, 1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<std::uint8_t>(random.below(plan.hosts()));
    const auto b = static_cast<std::uint8_t>(random.below(plan.hosts()));
    const Instant start = moment(random, work);
    // Most are too short for any timeout.
    const Duration length = percent(random, 15) ? between(random, seconds(1), seconds(100))
                                                : log_between(random, microseconds(50), seconds(2));
    plan.partitions.push_back({.from = a, .to = b, .start = start, .end = start + length});
    if (percent(random, 50)) {
      plan.partitions.push_back({.from = b, .to = a, .start = start, .end = start + length});
    }
  }
}

// Has its own generator, so that a seed's other draws do not depend on it. A path may be narrow
// from the first packet on, or in one direction only, become narrow, and wide again. The last size
// of each stays for ever.
void draw_narrowings(std::uint64_t seed, Duration work, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 3);
  if (!percent(random, 25)) return;
  for (std::uint8_t from = 0; from < plan.hosts(); ++from) {
    for (std::uint8_t to = 0; to < plan.hosts(); ++to) {
      if (from == to || !percent(random, 60)) continue;
      const std::size_t changes = between(random, 1, 4);
      const bool tells = percent(random, 40);
      for (std::size_t i = 0; i < changes; ++i) {
        const bool wide = i > 0 && percent(random, 25);
        plan.narrowings.push_back(
            {.from = from,
             .to = to,
             .start = i == 0 && percent(random, 50) ? Instant{} : moment(random, work),
             .bytes =
                 wide ? kAnyLength : log_between(random, 576, percent(random, 70) ? 1472 : 8972),
             .tells = tells});
      }
    }
  }
  std::stable_sort(plan.narrowings.begin(), plan.narrowings.end(),
                   [](const Narrowing& a, const Narrowing& b) { return a.start < b.start; });
}

// Has its own generator, too.
void draw_wider_use(std::uint64_t seed, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 5);
  const std::uint64_t access = percent(random, 35) ? between(random, 10, 80) : 0;
  const std::uint64_t options = percent(random, 35) ? between(random, 10, 90) : 0;
  for (ProgramPlan& program : plan.programs) {
    program.access_weight = access;
    program.options_percent = options;
    // Not drawn, so that other seeds' draws stay as they are.
    program.shared_percent = plan.seed % 4 == 3 ? 30 : 0;
  }
}

// Has generators of its own, too. Some hosts are processes of one host, and share memory.
void draw_memory(std::uint64_t seed, Duration work, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 11);
  Random polling(seed * 0xD1342543DE82EF95u + 12);
  if (!percent(random, 30)) return;
  const bool all = percent(random, 50);
  for (NodePlan& node : plan.nodes) {
    if (!all && percent(random, 40)) continue;
    node.identity = 1000;
    if (percent(random, 10)) node.memory.creating = between(random, 0, 1'000'000);
    if (percent(random, 10)) node.memory.joining = between(random, 0, 1'000'000);
    if (percent(random, 30)) node.memory.testing = between(random, 0, 1'000'000);
    if (percent(random, 20)) node.memory.reading = log_between(random, 100, 300'000);
    if (percent(polling, 30)) node.memory.polled = between(polling, 0, 1'000'000);
  }
  if (!percent(random, 30)) return;
  const std::size_t count = between(random, 1, 3);
  for (std::size_t i = 0; i < count; ++i) {
    plan.happenings.push_back({.at = moment(random, work),
                               .kind = Fault::Kind::kCorrupt,
                               .host = static_cast<std::uint8_t>(random.below(plan.hosts()))});
  }
  std::stable_sort(plan.happenings.begin(), plan.happenings.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// Has its own generator, too. Processes that share their processors with others stop and go.
void draw_slices(std::uint64_t seed, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 13);
  if (!percent(random, 15)) return;
  const bool all = percent(random, 50);
  for (NodePlan& node : plan.nodes) {
    if (!all && percent(random, 40)) continue;
    node.slices.runs = log_between(random, microseconds(20), milliseconds(5));
    node.slices.waits = log_between(random, microseconds(50), milliseconds(20));
  }
}

void draw_happenings(Random& random, const Troubles& troubles, Duration work, Plan& plan) {
  const auto add = [&](Fault::Kind kind, Duration longest) {
    const std::size_t count = between(random, 1, 3);
    for (std::size_t i = 0; i < count; ++i) {
      plan.happenings.push_back({.at = moment(random, work),
                                 .kind = kind,
                                 .host = static_cast<std::uint8_t>(random.below(plan.hosts())),
                                 .duration = log_between(random, microseconds(10), longest)});
    }
  };
  if (troubles.stalls) add(Fault::Kind::kStall, percent(random, 10) ? seconds(60) : seconds(3));
  if (troubles.jumps) add(Fault::Kind::kJump, percent(random, 10) ? seconds(90) : seconds(3));
  if (troubles.crashes) {
    add(percent(random, 60) ? Fault::Kind::kCrash : Fault::Kind::kClose, seconds(1));
  }
  std::stable_sort(plan.happenings.begin(), plan.happenings.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

Noise draw_noise(Random& random) {
  Noise noise;
  for (std::uint64_t* chance :
       {&noise.stray, &noise.replay, &noise.misroute, &noise.forge, &noise.hello}) {
    if (percent(random, 50)) *chance = log_between(random, 1000, 200'000);
  }
  noise.knows_proof = percent(random, 10);
  // An engine acts on a HELLO before its sender has proved itself, so forging one is an attack.
  if (!noise.knows_proof) noise.hello = 0;
  return noise;
}

void draw_wires(Random& random, const Troubles& troubles, Plan& plan) {
  const WireFaults common = draw_wire(random, troubles);
  const bool all_alike = percent(random, 50);
  for (std::size_t from = 0; from < plan.hosts(); ++from) {
    for (std::size_t to = 0; to < plan.hosts(); ++to) {
      plan.wires[from][to] = all_alike ? common : draw_wire(random, troubles);
    }
  }
}

// The hosts of a run use one address family, and all use checksums or none does.
void make_alike(Random& random, const Troubles& troubles, Plan& plan) {
  const std::uint8_t kind = percent(random, 70) ? 4 : percent(random, 50) ? 6 : 255;
  const bool checksum = troubles.damage || percent(random, 10);
  for (NodePlan& node : plan.nodes) {
    node.command.address_kind = node.data.address_kind = kind;
    node.config.checksum = checksum;
  }
}

// Has its own generator, too. Every NIC and path carries what protection adds to a packet.
void draw_protection(std::uint64_t seed, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 14);
  if (!percent(random, 50)) return;
  plan.protection =
      percent(random, 50) ? wire::Protection::kAuthenticate : wire::Protection::kEncrypt;
  std::vector<std::uint64_t> keys{plan.seed};
  // All have the same, in other orders.
  while (percent(random, 40) && keys.size() < 3) keys.push_back(plan.seed + keys.size());
  const auto widen = [](PortPlan& port) { port.packet_bytes += wire::kTagBytes; };
  for (NodePlan& node : plan.nodes) {
    node.protection = plan.protection;
    node.job_keys = keys;
    std::rotate(keys.begin(), keys.begin() + 1, keys.end());
    for (PortPlan* port : {&node.command, &node.data}) widen(*port);
    for (NicPlan& nic : node.more) {
      for (PortPlan* port : {&nic.command, &nic.data}) widen(*port);
    }
  }
  for (Narrowing& narrowing : plan.narrowings) {
    if (narrowing.bytes != kAnyLength) narrowing.bytes += wire::kTagBytes;
  }
}

Plan draw_plan_of_one_rail(std::uint64_t seed) {
  Random random(seed * 0x9E3779B97F4A7C15u + 1);
  Plan plan;
  plan.seed = seed;
  plan.network_seed = random.next();
  const std::size_t hosts = percent(random, 50) ? 2 : between(random, 2, 6);
  const Troubles troubles(random);
  for (std::size_t i = 0; i < hosts; ++i) {
    plan.nodes.push_back(draw_node(random, troubles, hosts));
  }
  make_alike(random, troubles, plan);
  draw_wires(random, troubles, plan);
  draw_programs(random, troubles, plan);
  const Duration work =
      plan.programs[0].pace * static_cast<Duration::rep>(plan.programs[0].operations);
  if (troubles.partitions) draw_partitions(random, work, plan);
  draw_narrowings(seed, work, plan);
  Random of_refusals(seed * 0xD1342543DE82EF95u + 7);
  plan.refuses = percent(of_refusals, 70);
  draw_wider_use(seed, plan);
  Random of_leaving(seed * 0xD1342543DE82EF95u + 9);
  if (percent(of_leaving, 50)) {
    plan.leaves_first = static_cast<std::uint8_t>(of_leaving.below(plan.hosts()));
  }
  draw_happenings(random, troubles, work, plan);
  draw_memory(seed, work, plan);
  draw_slices(seed, plan);
  if (troubles.noise) plan.noise = draw_noise(random);
  plan.faults_end = kPlanStart + work;
  for (const Partition& partition : plan.partitions) {
    if (percent(random, 50)) plan.faults_end = std::max(plan.faults_end, partition.end);
  }
  return plan;
}

}  // namespace

const char* name(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kCrash:
      return "crashes";
    case Fault::Kind::kClose:
      return "closes";
    case Fault::Kind::kStall:
      return "stalls";
    case Fault::Kind::kJump:
      return "its clock jumps";
    case Fault::Kind::kJoin:
      return "gets a NIC";
    case Fault::Kind::kMove:
      return "has another address";
    case Fault::Kind::kCorrupt:
      return "has its memory overwritten";
  }
  return "?";
}

Plan draw_plan(std::uint64_t seed, const DrawOptions& options) {
  Plan plan = draw_plan_of_one_rail(seed);
  if (!options.one_rail) draw_rails(seed, plan);
  draw_relay(seed, options.relays, plan);
  if (!options.keyless) draw_protection(seed, plan);
  return plan;
}

std::string describe(const Plan& plan) {
  std::string text =
      fmt::format("seed {}: {} hosts, faults end at {:.3f} ms{}\n", plan.seed, plan.hosts(),
                  static_cast<double>(plan.faults_end.time_since_epoch().count()) / 1e6,
                  plan.protection == wire::Protection::kOff       ? ""
                  : plan.protection == wire::Protection::kEncrypt ? ", packets are encrypted"
                                                                  : ", packets are authenticated");
  const auto us = [](Duration d) { return static_cast<double>(d.count()) / 1e3; };
  for (std::size_t i = 0; i < plan.hosts(); ++i) {
    const NodePlan& node = plan.nodes[i];
    const Config& config = node.config;
    const ProgramPlan& program = plan.programs[i];
    text += fmt::format(
        "host {}: packets {}/{} B, receive {}/{}, send queue {}/{}, window {}, send packets {}, "
        "unexpected {}, eager {}, tiny {}, ack {} us/{}, peers {}, checksum {}, poll {} us, "
        "runs {} us and waits {}, "
        "{} operations of up to {} B, {} pending, {} labels, accesses {}, options {} %\n",
        i, node.command.packet_bytes, node.data.packet_bytes, node.command.receive_packets,
        node.data.receive_packets, node.command.send_queue, node.data.send_queue,
        config.send_window, config.send_packets, config.unexpected_bytes, config.eager_bytes,
        config.tiny_bytes, us(config.ack_delay), config.ack_packets, config.max_peers,
        config.checksum, us(node.poll_interval), us(node.slices.runs), us(node.slices.waits),
        program.operations, program.max_message, program.max_pending, program.labels,
        program.access_weight, program.options_percent);
  }
  const WireFaults& wire = plan.wires[0][1];
  text += fmt::format(
      "wire 0>1: delay {} us, data +{} us, jitter {} us, loss {} ppm, duplicate {}, reorder {} by "
      "{} "
      "us, corrupt {}, truncate {}, {} ns/KiB, queue {} us\n",
      us(wire.delay), us(wire.data_delay), us(wire.jitter), wire.loss, wire.duplicate, wire.reorder,
      us(wire.reorder_by), wire.corrupt, wire.truncate, wire.ns_per_kib, us(wire.queue));
  text += fmt::format("noise: stray {} replay {} misroute {} forge {} hello {} on the path {}\n",
                      plan.noise.stray, plan.noise.replay, plan.noise.misroute, plan.noise.forge,
                      plan.noise.hello, plan.noise.knows_proof);
  for (const Partition& partition : plan.partitions) {
    const auto nic = [](std::uint8_t number) {
      return number == kAnyNic ? std::string() : fmt::format(".{}", number);
    };
    text += fmt::format("partition {}{}>{}{} from {} us to {} us{}\n", partition.from,
                        nic(partition.from_nic), partition.to, nic(partition.to_nic),
                        us(partition.start.time_since_epoch()),
                        us(partition.end.time_since_epoch()), partition.holds ? ", holds" : "");
  }
  for (const Narrowing& narrowing : plan.narrowings) {
    text += fmt::format("path {}>{} from {} us on: {} B{}\n", narrowing.from, narrowing.to,
                        us(narrowing.start.time_since_epoch()), narrowing.bytes,
                        narrowing.tells ? ", and says so" : "");
  }
  if (plan.leaves_first) text += fmt::format("host {} leaves first\n", *plan.leaves_first);
  return text + describe_rails(plan) + describe_relay(plan);
}

}  // namespace pullman::sim
