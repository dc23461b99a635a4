#include "nic/standing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pullman::nic {
namespace {

// Enough for a vlan on a bond on two NICs; it ends loops.
constexpr int kDeepest = 8;

template <std::size_t count>
bool among(const std::string& kind, const std::array<std::string_view, count>& kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Whether it takes over all packets that arrive at its ports.
bool has_ports(const LinkFacts& link) {
  return among<4>(link.kind, {"bridge", "bond", "team", "openvswitch"});
}

// Whether it may be a NIC: the kinds that containers have, that are made of several NICs, or that
// are part of one.
bool may_be_a_nic(const LinkFacts& link) {
  return among<10>(link.kind, {"", "veth", "netkit", "vlan", "bond", "team", "macvlan", "ipvlan",
                               "macvtap", "ipoib"});
}

const LinkFacts* of_index(const std::vector<LinkFacts>& links, int index) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const LinkFacts& link) {
    return index != 0 && link.index == index;
  });
  return found == links.end() ? nullptr : &*found;
}

bool stands_on_hardware(const std::vector<LinkFacts>& links, const LinkFacts& link, int depth) {
  if (link.hardware) return true;
  if (depth == 0) return false;
  // The other end of a veth pair is not below it.
  const LinkFacts* lower = link.kind == "veth" ? nullptr : of_index(links, link.lower);
  const bool part = lower != nullptr && may_be_a_nic(link);
  if (part && stands_on_hardware(links, *lower, depth - 1)) return true;
  return has_ports(link) && std::any_of(links.begin(), links.end(), [&](const LinkFacts& port) {
           return port.master == link.index && stands_on_hardware(links, port, depth - 1);
         });
}

}  // namespace

Judged judge(const std::vector<LinkFacts>& links, const std::string& name) {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [&](const LinkFacts& link) { return link.name == name; });
  if (found == links.end()) return {};
  const LinkFacts& link = *found;
  const LinkFacts* master = of_index(links, link.master);
  if (master != nullptr && has_ports(*master)) {
    return {Standing::kInside, fmt::format("a port of {}", master->name)};
  }
  if (link.default_route) return {Standing::kOutside, "leads to the default route"};
  if (link.hardware) return {Standing::kOutside, "has hardware"};
  if (stands_on_hardware(links, link, kDeepest)) {
    return {Standing::kOutside, fmt::format("a {} on hardware", link.kind)};
  }
  if (!may_be_a_nic(link)) return {Standing::kInside, fmt::format("a {}", link.kind)};
  return {Standing::kPlain, link.kind.empty() ? "" : fmt::format("a {}", link.kind)};
}

}  // namespace pullman::nic
