#include "nic/shared_subnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "nic/prefix.h"

namespace pullman::nic {
namespace {

int read_setting(const std::string& interface, const char* name) {
  std::ifstream in(fmt::format("/proc/sys/net/ipv4/conf/{}/{}", interface, name));
  int value = 0;
  return in >> value ? value : 0;
}

bool has_an_address_in(const Interface& interface, const Prefix& subnet) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [&](const Address& address) { return contains(subnet, address); });
}

}  // namespace

ArpSettings arp_settings_of(const std::string& interface) {
  const auto greater = [&](const char* name) {
    return std::max(read_setting("all", name), read_setting(interface, name));
  };
  return {.arp_ignore = greater("arp_ignore"), .rp_filter = greater("rp_filter")};
}

std::string subnet_advice(const std::vector<std::string>& names,
                          const std::vector<ArpSettings>& settings) {
  const bool answers_for_others = std::any_of(
      settings.begin(), settings.end(), [](const ArpSettings& one) { return one.arp_ignore == 0; });
  const bool strict = std::any_of(settings.begin(), settings.end(),
                                  [](const ArpSettings& one) { return one.rp_filter == 1; });
  if (!answers_for_others && !strict) return {};
  std::string sets;
  if (answers_for_others) sets += " net.ipv4.conf.all.arp_ignore=1";
  if (strict) sets += " net.ipv4.conf.all.rp_filter=2";
  return fmt::format(
      "{} are on one subnet, and {}: to make them separate rails, as root: sysctl -w{}",
      fmt::join(names, " and "),
      strict ? "only the first of them may receive (rp_filter)"
             : "each answers for the others' addresses (arp_ignore)",
      sets);
}

std::vector<std::string> subnet_advices(const std::vector<Interface>& interfaces) {
  std::set<std::string> out;
  for (const Interface& interface : interfaces) {
    if (!interface.up || interface.loopback) continue;
    for (std::size_t i = 0; i < interface.addresses.size(); ++i) {
      const Prefix subnet{interface.addresses[i], interface.prefix_bits[i]};
      if (subnet.network.kind != 4 || subnet.bits == 0) continue;
      std::vector<std::string> names;
      std::vector<ArpSettings> settings;
      for (const Interface& one : interfaces) {
        if (!one.up || one.loopback || !has_an_address_in(one, subnet)) continue;
        names.push_back(one.name);
        settings.push_back(arp_settings_of(one.name));
      }
      if (names.size() > 1) out.insert(subnet_advice(names, settings));
    }
  }
  out.erase("");
  return {out.begin(), out.end()};
}

}  // namespace pullman::nic
