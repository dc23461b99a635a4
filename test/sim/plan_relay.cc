// The relays of a plan: which hosts have no link in common, and by which hops they reach each
// other. Has its own generator, so that a seed's other draws do not depend on it.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "nic/prefix.h"
#include "sim/draw.h"
#include "sim/plan.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kPercent = 15;
constexpr const char* kNoRoute = "on";

// A relay needs IP addresses, and room beside the NICs in a HELLO. A host that allows fewer peers
// than there are hosts may have no place for its hops.
bool has_room(const Plan& plan) {
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const NodePlan& node) {
    const std::uint8_t kind = node.command.address_kind;
    const std::size_t told = kind == 4 ? kMaxNics : kind == 6 ? 4 : 0;
    return node.nics() < told && node.config.max_peers >= plan.hosts();
  });
}

class RelayDraw {
 public:
  RelayDraw(Random& random, Plan& plan) : random_(random), plan_(plan), order_(plan.hosts()) {}

  // The links by which packets are relayed, which stay as they are: a line, a star or a ring.
  void links() {
    std::iota(order_.begin(), order_.end(), std::uint8_t{0});
    for (std::size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[random_.below(i)]);
    }
    star_ = percent(random_, 40);
    ring_ = !star_ && order_.size() > 3 && percent(random_, 50);
    for (std::size_t i = 1; i < order_.size(); ++i) link(order_[star_ ? 0 : i - 1], order_[i]);
    if (ring_) link(order_.back(), order_.front());
  }

  // Of the other pairs most have no link, and some one that is cut and mended.
  void gaps(Duration work) {
    for (std::uint8_t a = 0; a < plan_.hosts(); ++a) {
      for (std::uint8_t b = 0; b < a; ++b) {
        if (linked_[a][b]) continue;
        const std::uint64_t how = random_.below(100);
        if (how < 60) {
          plan_.unlinked[a][b] = plan_.unlinked[b][a] = true;
        } else if (how < 85) {
          cut(a, b, kPlanStart + between(random_, Duration(0), work));
        }
      }
    }
  }

  void routes() {
    for (std::uint8_t host = 0; host < plan_.hosts(); ++host) {
      plan_.nodes[host].relay = routes_of(host);
    }
    // The middle of a star needs no route. Nor does an end to which others speak first, as long as
    // no hop forgets where its packets came from.
    if (star_ && percent(random_, 60)) plan_.nodes[order_[0]].relay = kNoRoute;
    if (!ring_ && hops_remember() && percent(random_, 40)) {
      plan_.nodes[order_.back()].relay = kNoRoute;
    }
  }

 private:
  void link(std::uint8_t a, std::uint8_t b) { linked_[a][b] = linked_[b][a] = true; }

  // Not for a peer timeout: a rail of an idle peer rests then, until something is sent.
  void cut(std::uint8_t a, std::uint8_t b, Instant start) {
    const Duration time = percent(random_, 30) ? between(random_, seconds(10), seconds(25))
                                               : log_between(random_, milliseconds(1), seconds(5));
    const bool from_the_start = percent(random_, 30);
    const auto add = [&](std::uint8_t from, std::uint8_t to) {
      plan_.relayed_cuts.push_back({.from = from,
                                    .to = to,
                                    .start = from_the_start ? Instant{} : start,
                                    .end = start + time});
    };
    add(a, b);
    if (percent(random_, 80)) add(b, a);
  }

  // Returns the neighbours of `host` by which a packet gets to `to`, the nearest first.
  std::vector<std::uint8_t> hops_to(std::uint8_t host, std::uint8_t to) const {
    std::array<std::size_t, kMaxHosts> away{};
    away.fill(plan_.hosts());
    std::vector<std::uint8_t> reached{to};
    away[to] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (std::uint8_t next = 0; next < plan_.hosts(); ++next) {
        // Not through the host itself.
        if (next == host || !linked_[reached[i]][next] || away[next] < plan_.hosts()) continue;
        away[next] = away[reached[i]] + 1;
        reached.push_back(next);
      }
    }
    std::vector<std::uint8_t> hops;
    for (const std::uint8_t next : reached) {
      if (linked_[host][next]) hops.push_back(next);
    }
    return hops;
  }

  // A route for each host that is no neighbour, of which those by one neighbour are its default;
  // sometimes a second one that goes the other way round.
  std::string routes_of(std::uint8_t host) {
    std::vector<std::string> items;
    std::optional<std::uint8_t> by_default;
    const bool has_default = percent(random_, 70);
    const bool has_spare = percent(random_, 50);
    const bool to_neighbours = percent(random_, 20);
    for (std::uint8_t to = 0; to < plan_.hosts(); ++to) {
      if (to == host || (linked_[host][to] && !to_neighbours)) continue;
      const auto hops = hops_to(host, to);
      if (has_default && !by_default && !linked_[host][to]) by_default = hops[0];
      // The default comes behind all prefixes, so also behind that of a spare.
      const bool spare = hops.size() > 1 && has_spare;
      if (by_default != hops[0] || spare) items.push_back(route(to, hops[0]));
      if (spare) items.push_back(route(to, hops[1]));
    }
    if (by_default) items.push_back("default via " + text_of(*by_default));
    return items.empty() ? kNoRoute : fmt::format("{}", fmt::join(items, ", "));
  }

  std::string route(std::uint8_t to, std::uint8_t hop) const {
    return fmt::format("{}/{} via {}", nic::host_string(address(to)), kind() == 4 ? 32 : 128,
                       text_of(hop));
  }
  std::uint8_t kind() const { return plan_.nodes[0].command.address_kind; }
  nic::Address address(std::uint8_t host) const {
    return address_of({host, Channel::kCommand}, kind());
  }
  std::string text_of(std::uint8_t host) const { return nic::to_string(address(host)); }

  // Who a packet came from is forgotten with the connection to that neighbour.
  bool hops_remember() const {
    const auto ends_connections = [](const Fault& fault) {
      return fault.kind != Fault::Kind::kJoin && fault.kind != Fault::Kind::kMove;
    };
    return plan_.programs[0].disconnect_weight == 0 && plan_.partitions.empty() &&
           plan_.nic_troubles.empty() && plan_.ailments.empty() && !plan_.noise.knows_proof &&
           std::none_of(plan_.happenings.begin(), plan_.happenings.end(), ends_connections);
  }

  Random& random_;
  Plan& plan_;
  std::vector<std::uint8_t> order_;
  bool star_ = false;
  bool ring_ = false;
  std::array<std::array<bool, kMaxHosts>, kMaxHosts> linked_{};
};

}  // namespace

bool Plan::need_relay(std::uint8_t a, std::uint8_t b) const {
  return unlinked[a][b] ||
         std::any_of(relayed_cuts.begin(), relayed_cuts.end(), [&](const Partition& cut) {
           return (cut.from == a && cut.to == b) || (cut.from == b && cut.to == a);
         });
}

void draw_relay(std::uint64_t seed, Relays which, Plan& plan) {
  Random random(seed * 0xD1342543DE82EF95u + 15);
  const bool drawn = percent(random, kPercent) || which == Relays::kAlways;
  if (!drawn || which == Relays::kNever || plan.hosts() < 3 || !has_room(plan)) return;
  plan.relays = true;
  // A program that leaves what a neighbour sends unreceived, up to the bound of memory, stops what
  // that neighbour relays by it, too: both are messages of one connection.
  for (NodePlan& node : plan.nodes) node.config.unexpected_bytes = 256u << 20;
  const Duration work =
      plan.programs[0].pace * static_cast<Duration::rep>(plan.programs[0].operations);
  RelayDraw draw(random, plan);
  draw.links();
  draw.gaps(work);
  draw.routes();
  for (const Partition& cut : plan.relayed_cuts) {
    if (percent(random, 70)) plan.faults_end = std::max(plan.faults_end, cut.end);
  }
  if (percent(random, 30)) plan.bad_heads = log_between(random, 1, 30);
}

std::string describe_relay(const Plan& plan) {
  if (!plan.relays) return "";
  std::string text;
  for (std::size_t a = 0; a < plan.hosts(); ++a) {
    text += fmt::format("host {} relays: {}; no link to", a, plan.nodes[a].relay);
    for (std::size_t b = 0; b < plan.hosts(); ++b) {
      if (plan.unlinked[a][b]) text += fmt::format(" {}", b);
    }
    text += '\n';
  }
  const auto us = [](Instant at) {
    return static_cast<double>(at.time_since_epoch().count()) / 1e3;
  };
  for (const Partition& cut : plan.relayed_cuts) {
    text += fmt::format("partition {}>{} from {} us to {} us, to be relayed\n", cut.from, cut.to,
                        us(cut.start), us(cut.end));
  }
  return text;
}

}  // namespace pullman::sim
