// A plan: everything that a seed decides before the run begins. Hosts, options, wires, faults of
// hosts and networks with their times, and how busy the programs are.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/node.h"
#include "sim/wire.h"
#include "wire/header.h"

namespace pullman::sim {

// How one host's program behaves.
struct ProgramPlan {
  std::size_t operations = 50;
  Duration pace = std::chrono::microseconds(20);  // between operations, on average
  std::size_t max_message = 4096;
  std::size_t max_pending = 32;  // operations at once
  Tag labels = 4;                // how many different ones
  std::uint64_t send_weight = 45;
  std::uint64_t receive_weight = 40;
  std::uint64_t connect_weight = 6;
  std::uint64_t cancel_weight = 3;
  std::uint64_t probe_weight = 5;
  std::uint64_t disconnect_weight = 0;
  std::uint64_t access_weight = 0;    // puts, gets and atomics
  std::uint64_t options_percent = 0;  // of sends, and of receives, that have any
  std::uint64_t shared_percent = 0;   // of receives that take many messages
  bool late_receives = false;         // posts few receives before the end: messages are unexpected
};

// A fault, or a change, of a host.
struct Fault {
  enum class Kind : std::uint8_t {
    kCrash,    // its process dies silently; another starts after `duration`
    kClose,    // its process closes in good order, then another starts
    kStall,    // its process does not run for `duration`
    kJump,     // its clock jumps forward by `duration`
    kJoin,     // one of its late NICs comes
    kMove,     // its NIC number `nic` gets another address
    kCorrupt,  // the memory that it shares with others is overwritten
  };
  Instant at;
  Kind kind = Kind::kStall;
  std::uint8_t host = 0;
  Duration duration{0};
  std::uint8_t nic = 0;
};

const char* name(Fault::Kind kind);

// The wire between two NICs that are not both the first of their hosts.
struct RailWire {
  Plug from;
  Plug to;
  WireFaults faults;
};

// The programs begin then.
inline constexpr Instant kPlanStart{std::chrono::seconds(1)};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<NodePlan> nodes;
  std::vector<ProgramPlan> programs;
  std::array<std::array<WireFaults, kMaxHosts>, kMaxHosts> wires{};
  std::vector<RailWire> rail_wires;
  std::vector<Partition> partitions;
  std::vector<Ailment> ailments;
  std::vector<NicTrouble> nic_troubles;
  nic::Reach reach_alike = nic::Reach::kDirect;  // between NICs of one number
  nic::Reach reach_across = nic::Reach::kNone;   // between others
  std::vector<Narrowing> narrowings;             // in order of time
  std::vector<Fault> happenings;                 // in order of time
  Noise noise;
  wire::Protection protection = wire::Protection::kOff;  // of all hosts, which have one key
  bool refuses = true;                                   // hosts answer for closed ports (ICMP)
  // At the end this host closes as soon as it has received the last messages of all others.
  std::optional<std::uint8_t> leaves_first;
  bool relays = false;                                            // hosts have NodePlan::relay
  std::array<std::array<bool, kMaxHosts>, kMaxHosts> unlinked{};  // no NIC of one reaches the other
  std::vector<Partition> relayed_cuts;  // of links to which the relay is another way
  std::uint64_t bad_heads = 0;          // in percent, how often programs send malformed ones
  Instant faults_end;
  std::uint64_t network_seed = 0;

  std::size_t hosts() const { return nodes.size(); }
  // Returns whether an attacker can forge packets that are taken for real ones.
  bool attacked() const { return noise.knows_proof && protection == wire::Protection::kOff; }
  // Returns whether these two depend on a relay, always or for a time.
  bool need_relay(std::uint8_t a, std::uint8_t b) const;
};

// Which plans have relays.
enum class Relays : std::uint8_t { kDrawn, kNever, kAlways };

// What of a seed's draws came later than the rest, and can be left out.
struct DrawOptions {
  bool one_rail = false;           // one NIC in each host
  bool keyless = false;            // packets are not protected
  Relays relays = Relays::kDrawn;  // always: where there is room for them
};

Plan draw_plan(std::uint64_t seed, const DrawOptions& options = {});

// In plan_rails.cc.
void draw_rails(std::uint64_t seed, Plan& plan);
std::string describe_rails(const Plan& plan);

// In plan_relay.cc.
void draw_relay(std::uint64_t seed, Relays which, Plan& plan);
std::string describe_relay(const Plan& plan);

// Returns a line per host, wire and fault, for the head of a trace.
std::string describe(const Plan& plan);

}  // namespace pullman::sim
