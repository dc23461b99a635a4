#include "info/host_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "info/drawing.h"
#include "nic/address.h"
#include "rail_verdict.h"

namespace info {
namespace {

using pullman::RailFinding;
using pullman::RailState;
using pullman::RailView;

// A NIC, which each driver and address has a row of its own for.
struct Nic {
  const Row* row = nullptr;             // the one that counts
  std::vector<std::string> addresses;   // of all
  std::set<std::string> other_drivers;  // that know it, too
};

bool outranks(const Row& one, const Row& other, const std::string& driver) {
  if (one.used != other.used) return one.used;
  return one.device.driver == driver && other.device.driver != driver;
}

struct ByName {
  bool operator()(const std::string& one, const std::string& other) const {
    return comes_before(one, other);
  }
};
using Nics = std::map<std::string, Nic, ByName>;

Nics by_name(const Inventory& inventory, const std::string& driver) {
  Nics out;
  for (const Row& row : inventory.rows) {
    Nic& nic = out[row.device.name];
    if (nic.row == nullptr || outranks(row, *nic.row, driver)) nic.row = &row;
    const std::string address = pullman::nic::host_string(row.device.address);
    auto& all = nic.addresses;
    if (std::find(all.begin(), all.end(), address) == all.end()) all.push_back(address);
    nic.other_drivers.insert(row.device.driver);
  }
  for (auto& [name, nic] : out) nic.other_drivers.erase(nic.row->device.driver);
  return out;
}

std::string line(std::string_view text, std::string_view colour = kInk) {
  if (text.empty()) return "";
  return fmt::format(R"(<tr><td align="left"><font color="{}">{}</font></td></tr>)", colour,
                     wrapped(text, 46));
}

std::string node_of(const std::string& id, const Nic& nic) {
  constexpr std::size_t kAddresses = 4;
  const Device& device = nic.row->device;
  const bool used = nic.row->used;
  std::string out = fmt::format(
      "{} [label=<<table border=\"1\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"3\" "
      "color=\"{}\" bgcolor=\"{}\"><tr><td bgcolor=\"{}\" align=\"left\"><font color=\"white\">"
      "<b> {} </b> {}</font></td></tr>",
      id, used ? kFine : kUnknown, used ? "#eaf4fb" : "#f4f5f7", used ? kFine : kUnknown,
      in_label(device.name, 40), used ? "used" : "not used");
  out += line(fmt::format("{}{}, packets of {} bytes", device.driver,
                          device.mbps == 0 ? "" : ", " + speed(device.mbps), device.packet_bytes));
  for (std::size_t i = 0; i < std::min(nic.addresses.size(), kAddresses); ++i) {
    out += line(nic.addresses[i], kFaint);
  }
  if (nic.addresses.size() > kAddresses) {
    out += line(fmt::format("and {} addresses more", nic.addresses.size() - kAddresses), kFaint);
  }
  if (!device.offloads.empty()) out += line(device.offloads, kFaint);
  if (!device.up) out += line("has no link", kBroken);
  out += line(used ? device.nature : nic.row->why_not, used ? kFaint : kInk);
  if (!nic.other_drivers.empty()) {
    out +=
        line("known to " + fmt::format("{}", fmt::join(nic.other_drivers, ", ")) + ", too", kFaint);
  }
  return out + "</table>>]\n";
}

std::string box(const std::string& id, const std::string& title, const std::string& content) {
  return fmt::format(
      "subgraph cluster_{} {{ graph [style=rounded, color=\"#9aa5b1\", bgcolor=\"#ffffff\", "
      "margin=14, fontsize=13, labeljust=l, label=<{}>]\n{}}}\n",
      id, title, content);
}

std::string_view colour_of(const RailView& rail) {
  if (is_fine(rail)) return kFine;
  const bool carries = rail.state == RailState::kUp || rail.state == RailState::kSuspect;
  return carries || rail.state == RailState::kDrained ? kDegraded : kBroken;
}

std::string label_of(const RailView& rail) {
  std::string out = fmt::format("rail {}: {}", rail.number, name(rail.state));
  if (rail.rtt.count() > 0) {
    out += fmt::format(", {:.0f} us", static_cast<double>(rail.rtt.count()) / 1e3);
  }
  if (rail.check != RailFinding::kNotChecked) out += fmt::format(", {}", name(rail.check));
  return out;
}

// The peer with its addresses, and an edge for each rail.
std::string draw_rails(const PeerRails& to, const std::map<std::string, std::string>& ids) {
  std::string addresses;
  std::string edges;
  for (const RailView& rail : to.rails) {
    if (rail.memory) continue;
    const std::string id = fmt::format("there{}", rail.number);
    addresses += fmt::format(
        "{} [label=<<table border=\"1\" cellborder=\"0\" cellpadding=\"6\" color=\"{}\" "
        "bgcolor=\"white\"><tr><td>{}</td></tr></table>>]\n",
        id, colour_of(rail), in_label(rail.remote, 80));
    const auto from = ids.find(rail.nic);
    if (from == ids.end()) continue;
    edges += fmt::format(
        "{} -> {} [color=\"{}\", style={}, "
        "label=<{}<br/><font point-size=\"5\"> </font>>]\n",
        from->second, id, colour_of(rail), colour_of(rail) == kBroken ? "dashed" : "solid",
        in_label(label_of(rail)));
  }
  if (addresses.empty()) return "";
  return box("peer", fmt::format("<b>{}</b>", in_label(to.peer, 80)), addresses) + edges;
}

std::string title_of(const std::string& driver, const PeerRails& to) {
  std::string out = fmt::format("The NICs of this host, as driver {} uses them", driver);
  return to.peer.empty() ? out : out + fmt::format(", and the rails to {}", to.peer);
}

std::vector<std::string> legend_of(const PeerRails& to) {
  if (to.rails.empty()) return {};
  std::vector<std::string> out{
      "A line: a rail, with its state, its round trip (us: microseconds) and what a check found.",
      "Blue: fine. Orange: carries messages or may, but not all is well. Red, dashed: carries "
      "none."};
  const bool in_memory = std::any_of(to.rails.begin(), to.rails.end(),
                                     [](const RailView& rail) { return rail.memory; });
  if (in_memory) out.emplace_back("Messages take memory and no rail: the peer is on this host.");
  return out;
}

}  // namespace

std::string host_picture(const Inventory& inventory, const std::string& driver,
                         const PeerRails& to) {
  std::map<std::string, std::string> ids;  // of the nodes, by the NICs' names
  // The NICs at each NUMA node. Dot draws the last one first, unless rails have a better order.
  constexpr int kNodeUnknown = std::numeric_limits<int>::max();
  std::map<int, std::string, std::greater<>> places;
  for (const auto& [node, cpus] : inventory.cpus) places[node];
  for (const auto& [name, nic] : by_name(inventory, driver)) {
    const std::string id = fmt::format("nic{}", ids.size());
    ids[name] = id;
    places[nic.row->device.numa_node < 0 ? kNodeUnknown : nic.row->device.numa_node] +=
        node_of(id, nic);
  }
  std::string out = head_of_graph(title_of(driver, to), legend_of(to));
  std::string host;
  for (const auto& [node, content] : places) {
    if (node == kNodeUnknown) {
      host += box("nowhere", "at no NUMA node that is known", content);
      continue;
    }
    const auto cpus = inventory.cpus.find(node);
    const std::string title =
        fmt::format("<b>NUMA node {}</b><br align=\"left\"/>CPUs {}<br align=\"left\"/>", node,
                    cpus == inventory.cpus.end() ? "?" : in_label(cpus->second, 60));
    const std::string none = fmt::format("none{} [label=\"no NIC\"]\n", node);
    host += box(fmt::format("node{}", node), title, content.empty() ? none : content);
  }
  return out + host + draw_rails(to, ids) + "}\n";
}

}  // namespace info
