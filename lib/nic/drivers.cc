#include "nic/drivers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/log.h"
#include "nic/distance.h"
#include "nic/fabric/driver.h"
#include "nic/fabric/signals.h"
#include "nic/tcp/driver.h"
#include "nic/udp/driver.h"

namespace pullman::nic {
namespace {

bool bypasses_kernel(const Device& device) {
  constexpr std::array<std::string_view, 3> kProviders = {"usnic", "verbs", "efa"};
  return device.up && std::any_of(kProviders.begin(), kProviders.end(), [&](std::string_view name) {
           return device.provider.starts_with(name);
         });
}

}  // namespace

std::vector<std::string> driver_names() {
  return {"udp", "tcp", "fabric"};
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
    return "udp";  // libfabric has no device
  }
}

std::unique_ptr<Driver> make_driver(const std::string& name, const std::string& provider) {
  fabric::give_back_signals();  // libfabric is loaded, whatever the driver
  if (name == "udp") return udp::make_driver();
  if (name == "tcp") return tcp::make_driver();
  if (name == "fabric") return fabric::make_driver(provider);
  throw NicError(fmt::format("there is no driver '{}'; the drivers are: {}", name,
                             fmt::join(driver_names(), ", ")));
}

std::vector<Device> devices_of(Driver& driver) {
  auto devices = driver.devices();
  measure_distances(devices);
  return devices;
}

std::vector<Device> devices_to_use(Driver& driver, const std::vector<std::string>& wanted,
                                   const Most& most) {
  Choice choice = choose_devices(devices_of(driver), wanted, most);
  if (!choice.problem.empty()) throw NicError(choice.problem);
  for (const std::string& lack : choice.lacks) log().warn("{}; it is not used", lack);
  return std::move(choice.chosen);
}

}  // namespace pullman::nic
