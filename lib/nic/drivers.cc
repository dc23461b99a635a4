#include "nic/drivers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nic/fabric/driver.h"
#include "nic/fabric/signals.h"
#include "nic/udp/driver.h"

namespace pullman::nic {
namespace {

// Lower is better.
int rank(const Device& device) {
  const bool through_kernel = device.provider == "udp" || device.provider.empty();
  const bool link_local = host_string(device.address).starts_with("fe80:");
  const int family = device.address.kind == 6 ? (link_local ? 2 : 1) : 0;
  return (device.up ? 0 : 100) + (device.loopback ? 50 : 0) + (through_kernel ? 10 : 0) + family;
}

bool bypasses_kernel(const Device& device) {
  constexpr std::array<std::string_view, 3> kProviders = {"usnic", "verbs", "efa"};
  return device.up && std::any_of(kProviders.begin(), kProviders.end(), [&](std::string_view name) {
           return device.provider.starts_with(name);
         });
}

bool matches(const Device& device, const std::string& wanted) {
  return device.name == wanted || host_string(device.address) == wanted;
}

using Picked = std::vector<bool>;

// The best device, not yet picked, that `accepts`; devices.size() if none.
template <typename Accepts>
std::size_t best(const std::vector<Device>& devices, const Picked& picked, Accepts accepts) {
  std::size_t found = devices.size();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (picked[i] || !accepts(devices[i])) continue;
    if (found == devices.size() || rank(devices[i]) < rank(devices[found])) found = i;
  }
  return found;
}

std::string known_devices(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  names.reserve(devices.size());
  for (const Device& device : devices) {
    names.push_back(fmt::format("{} ({})", device.name, host_string(device.address)));
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::string why_not(const Device& device, const Choice& choice,
                    const std::vector<std::string>& wanted) {
  if (!device.up) return "it is down, or has no link";
  for (const Device& chosen : choice.chosen) {
    if (chosen.name == device.name) {
      return fmt::format("{} is used through {}", device.name, host_string(chosen.address));
    }
  }
  if (!wanted.empty()) return "not among the NICs asked for";
  if (device.loopback) return "loopback is used only if there is nothing else";
  return choice.chosen.empty()
             ? "not usable"
             : fmt::format("one NIC is enough, and {} comes first", choice.chosen.front().name);
}

void choose_wanted(const std::vector<Device>& devices, const std::vector<std::string>& wanted,
                   Picked& picked, Choice& choice) {
  for (const std::string& name : wanted) {
    const auto i = best(devices, picked, [&](const Device& d) { return matches(d, name); });
    if (i == devices.size()) {
      choice.problem = fmt::format("there is no NIC '{}' for this driver; there are: {}", name,
                                   known_devices(devices));
      return;
    }
    if (!devices[i].up) {
      choice.problem =
          fmt::format("NIC '{}' is down, or has no link: ip link set {} up", name, devices[i].name);
      return;
    }
    picked[i] = true;
    choice.chosen.push_back(devices[i]);
  }
}

void choose_first(const std::vector<Device>& devices, Picked& picked, Choice& choice) {
  const auto i = best(devices, picked, [](const Device& d) { return d.up; });
  if (i == devices.size()) {
    choice.problem = "there is no NIC this driver can use: none has an address and a link";
    return;
  }
  picked[i] = true;
  choice.chosen.push_back(devices[i]);
}

}  // namespace

std::vector<std::string> driver_names() {
  return {"udp", "fabric"};
}

std::string best_driver(const std::vector<Device>& of_fabric) {
  return std::any_of(of_fabric.begin(), of_fabric.end(), bypasses_kernel) ? "fabric" : "udp";
}

std::string driver_for(const std::string& name, const std::string& provider) {
  if (name != "auto") return name;
  if (!provider.empty()) return "fabric";
  try {
    return best_driver(fabric::make_driver("")->devices());
  } catch (const NicError&) {
    return "udp";  // libfabric has nothing to offer
  }
}

std::unique_ptr<Driver> make_driver(const std::string& name, const std::string& provider) {
  fabric::give_back_signals();  // libfabric is loaded, whichever driver is asked for
  if (name == "udp") return udp::make_driver();
  if (name == "fabric") return fabric::make_driver(provider);
  throw NicError(fmt::format("there is no driver '{}'; the drivers are: {}", name,
                             fmt::join(driver_names(), ", ")));
}

Choice choose_devices(const std::vector<Device>& devices, const std::vector<std::string>& wanted) {
  Choice choice;
  Picked picked(devices.size(), false);
  if (wanted.empty()) {
    choose_first(devices, picked, choice);
  } else {
    choose_wanted(devices, wanted, picked, choice);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!picked[i]) choice.not_chosen.push_back({devices[i], why_not(devices[i], choice, wanted)});
  }
  return choice;
}

std::vector<Device> devices_to_use(Driver& driver, const std::vector<std::string>& wanted) {
  Choice choice = choose_devices(driver.devices(), wanted);
  if (!choice.problem.empty()) throw NicError(choice.problem);
  return std::move(choice.chosen);
}

}  // namespace pullman::nic
