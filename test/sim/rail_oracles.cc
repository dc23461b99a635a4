// The invariants of rails: all are up again after the faults, both ends agree on them, and none
// goes down because a peer is busy or dead.
#include <fmt/format.h>

#include <algorithm>

#include "sim/simulation.h"

namespace pullman::sim {
namespace {

// From the end of the faults until all rails are up: the longest pause between two probes, several
// answers, and the penalty of a rail that flapped.
constexpr Duration kReinstated = std::chrono::seconds(8);
// A host that stood still has left its peers with RTT samples of that length, and a probe is
// overdue only after three of them.
constexpr int kTimeoutInRoundTrips = 3;
// A rail that is up for less may not have been noticed between two cuts.
constexpr Duration kNoticed = std::chrono::seconds(2);

struct Cut {
  Instant start;
  Instant end;
};

// Returns the times in which a wire between two NICs carried nothing in at least one direction.
// `all`: also those in which the relay is another way.
std::vector<Cut> cuts_between(const Plan& plan, Endpoint a, Endpoint b, bool all) {
  std::vector<Cut> cuts;
  const auto add = [&](const std::vector<Partition>& partitions) {
    for (const Partition& partition : partitions) {
      if (partition.stops(a, b) || partition.stops(b, a)) {
        cuts.push_back({partition.start, partition.end});
      }
    }
  };
  add(plan.partitions);
  if (all) add(plan.relayed_cuts);
  for (const NicTrouble& trouble : plan.nic_troubles) {
    const bool here = trouble.at.covers(a) || trouble.at.covers(b);
    if (here && trouble.kind != NicTrouble::Kind::kLiar) {
      cuts.push_back({trouble.start, trouble.end});
    }
  }
  return cuts;
}

bool covered(const std::vector<Cut>& cuts, Instant at) {
  return std::any_of(cuts.begin(), cuts.end(),
                     [&](const Cut& cut) { return cut.start <= at && at < cut.end; });
}

// Returns how many NICs a HELLO can announce.
std::size_t nics_told(const Node& node) {
  const std::uint8_t kind = node.plan().command.address_kind;
  return kind == 4 ? wire::kMaxNics : kind == 6 ? 4 : 1;
}

bool mirrors(const std::vector<RailView>& here, const std::vector<RailView>& there) {
  return here.size() == there.size() &&
         std::equal(here.begin(), here.end(), there.begin(), [](const auto& a, const auto& b) {
           return a.number == b.number && a.local == b.remote && a.remote == b.local;
         });
}

}  // namespace

// Returns whether for that time no wire between two hosts, or not the one by which they call each
// other, carried anything.
bool Simulation::cut_for(Duration limit, std::size_t a, std::size_t b, bool home_only) const {
  if (plan_.unlinked[a][b]) return false;  // what others do counts
  std::vector<std::vector<Cut>> wires;
  const std::size_t nics_a = home_only ? 1 : plan_.nodes[a].nics() - plan_.nodes[a].late;
  const std::size_t nics_b = home_only ? 1 : plan_.nodes[b].nics() - plan_.nodes[b].late;
  std::vector<Instant> changes;
  for (std::uint8_t i = 0; i < nics_a; ++i) {
    for (std::uint8_t j = 0; j < nics_b; ++j) {
      const nic::Reach reach = i == j ? plan_.reach_alike : plan_.reach_across;
      if (reach == nic::Reach::kNone) continue;
      wires.push_back(cuts_between(plan_, {static_cast<std::uint8_t>(a), Channel::kCommand, i},
                                   {static_cast<std::uint8_t>(b), Channel::kCommand, j},
                                   home_only));
      for (const Cut& cut : wires.back()) changes.insert(changes.end(), {cut.start, cut.end});
    }
  }
  std::sort(changes.begin(), changes.end());
  std::optional<Cut> all;  // the latest time in which all of them were cut
  for (std::size_t i = 0; i + 1 < changes.size(); ++i) {
    const bool none_left = std::all_of(wires.begin(), wires.end(),
                                       [&](const auto& cuts) { return covered(cuts, changes[i]); });
    if (!none_left) continue;
    const bool goes_on = all && changes[i] - all->end < kNoticed;
    all = {goes_on ? all->start : changes[i], changes[i + 1]};
    if (all->end - all->start >= limit) return true;
  }
  return false;
}

// The network is whole, so all rails must soon be up, whether or not there is anything to send.
void Simulation::reinstate() {
  if (plan_.attacked()) return;
  Duration stood_still{0};
  for (const Fault& happening : plan_.happenings) {
    const bool still =
        happening.kind == Fault::Kind::kStall || happening.kind == Fault::Kind::kJump;
    if (still) stood_still = std::max(stood_still, happening.duration);
  }
  Duration timeout{0};  // messages about rails may be lost as often as not
  for (const NodePlan& node : plan_.nodes)
    timeout = std::max(timeout, Duration(node.config.pto_initial));
  const Instant bound =
      stage_.now() + kReinstated + 4 * timeout + kTimeoutInRoundTrips * stood_still;
  while (!failed() && !rail_not_up().empty()) {
    restore_rails();
    if (step(bound) && stage_.now() < bound) continue;
    const std::string which = rail_not_up();
    if (!failed() && !which.empty()) did_not_finish(("the return of " + which).c_str());
    return;
  }
}

void Simulation::restore_rails() {
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    Node& node = stage_.node(host);
    if (node.alive() && node.plan().config.sticky_rails) node.restore_rails();
  }
}

// Returns two NICs that could be a rail and of which neither is used by one with that host, in
// words; empty if there are none.
std::string Simulation::missing_rail(std::size_t a, const std::vector<RailView>& rails_of_a,
                                     std::size_t b, const std::vector<RailView>& rails_of_b) {
  Node& here = stage_.node(a);
  Node& there = stage_.node(b);
  const auto by_nics = std::count_if(rails_of_a.begin(), rails_of_a.end(),
                                     [](const RailView& rail) { return !rail.memory; });
  if (by_nics == wire::kMaxRails || plan_.unlinked[a][b]) return "";
  const auto idle = [&](const Node& node, const std::vector<RailView>& rails) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < std::min(node.nics_by_now(), nics_told(node)); ++i) {
      const bool used = std::any_of(rails.begin(), rails.end(), [&](const RailView& rail) {
        return rail.nic == node.name_of(i);
      });
      if (!used) found.push_back(i);
    }
    return found;
  };
  for (const std::size_t i : idle(here, rails_of_a)) {
    for (const std::size_t j : idle(there, rails_of_b)) {
      const nic::Reach reach = i == j ? plan_.reach_alike : plan_.reach_across;
      if (reach == nic::Reach::kNone || here.is_stream(i) != there.is_stream(j)) continue;
      return fmt::format("the rail of {} and {}, which no rail has", here.name_of(i),
                         there.name_of(j));
    }
  }
  return "";
}

// Returns the first rail that is not up, in words; empty if all are.
std::string Simulation::rail_not_up() {
  struct Seen {
    std::size_t host;
    std::vector<RailView> rails;
  };
  std::vector<Seen> all;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    Node& node = stage_.node(host);
    if (!node.alive()) continue;
    for (const PeerId id : programs_[host]->handles()) {
      if (node.engine().inspector().peer_state(id) != PeerState::kConnected) continue;
      all.push_back({host, node.engine().inspector().rails(node.local_now(), id)});
    }
  }
  for (const Seen& seen : all) {
    const RailView& home = seen.rails.front();
    const auto other = std::find_if(all.begin(), all.end(), [&](const Seen& it) {
      return it.rails.front().local == home.remote && it.rails.front().remote == home.local;
    });
    if (other == all.end()) continue;  // it has ended, which this end does not know yet
    if (!mirrors(seen.rails, other->rails)) {
      return fmt::format("agreement: hosts {} and {} have other rails, {} and {} of them",
                         seen.host, other->host, seen.rails.size(), other->rails.size());
    }
    const std::string missing = missing_rail(seen.host, seen.rails, other->host, other->rails);
    if (!missing.empty()) return missing;
    for (const RailView& rail : seen.rails) {
      if (rail.state == RailState::kUp) continue;
      // Between neighbours there need be no other way than the direct one.
      if (rail.nic == "relay" && !plan_.unlinked[seen.host][other->host]) continue;
      return fmt::format("rail {} of host {}, {} to {}: {}, {}", rail.number, seen.host, rail.local,
                         rail.remote, pullman::name(rail.state), pullman::name(rail.reason));
    }
  }
  return "";
}

// Returns whether nothing in the plan is a reason for a rail to go down.
bool Simulation::blames_nobody() const {
  const bool quiet = plan_.partitions.empty() && plan_.narrowings.empty() &&
                     plan_.ailments.empty() && plan_.nic_troubles.empty() &&
                     plan_.relayed_cuts.empty();
  // A relayed rail goes down when its hop dies, or if an origin misleads its own packets.
  if (plan_.relays && (!plan_.happenings.empty() || plan_.bad_heads != 0)) return false;
  const Noise& noise = plan_.noise;
  if (!quiet || (noise.stray | noise.replay | noise.misroute | noise.forge | noise.hello) != 0) {
    return false;
  }
  const auto loses = [](const WireFaults& wire) {
    return (wire.loss | wire.corrupt | wire.truncate | wire.ns_per_kib) != 0;
  };
  for (std::size_t a = 0; a < plan_.hosts(); ++a) {
    const NodePlan& node = plan_.nodes[a];
    if (node.data.send_error != 0 || node.data.receive_packets < 1024) return false;
    for (std::size_t b = 0; b < plan_.hosts(); ++b) {
      if (loses(plan_.wires[a][b])) return false;
    }
  }
  return std::none_of(plan_.rail_wires.begin(), plan_.rail_wires.end(),
                      [&](const RailWire& wire) { return loses(wire.faults); });
}

// Peers may have died, stalled or closed, for which no rail may be blamed.
void Simulation::check_blame() {
  if (!blames_nobody()) return;
  for (std::size_t host = 0; host < stage_.hosts(); ++host) {
    const std::uint64_t blamed = stage_.node(host).engine().inspector().audit().rails_blamed;
    if (blamed == 0) continue;
    stage_.findings().report(
        fmt::format("host {} blamed rails {} times, though the network was fine", host, blamed));
  }
}

}  // namespace pullman::sim
