// The drivers there are, and which of their devices to use. Cold: called once, at set-up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

// Names for make_driver().
std::vector<std::string> driver_names();

// What Config::driver means: a name as it is; "auto" is fabric if a libfabric provider is asked for
// or a device that bypasses the kernel is up, else udp.
std::string driver_for(const std::string& name, const std::string& provider);

// The driver to prefer, by the devices that fabric has.
std::string best_driver(const std::vector<Device>& of_fabric);

// `provider`: fabric's libfabric provider, empty for the best there is. Throws NicError with the
// known names for another.
std::unique_ptr<Driver> make_driver(const std::string& name, const std::string& provider);

struct NotChosen {
  Device device;
  std::string reason;
};

struct Choice {
  std::vector<Device> chosen;         // in the order they were asked for
  std::vector<NotChosen> not_chosen;  // all the others, each with why
  std::string problem;                // why `chosen` is not what was asked for; empty if it is
};

// What Config::nics means: `wanted` names interfaces or addresses; empty is the first usable device
// that is not loopback, else loopback. Devices that bypass the kernel come first, then IPv4, then
// IPv6.
Choice choose_devices(const std::vector<Device>& devices, const std::vector<std::string>& wanted);

// The same, but a problem is a NicError.
std::vector<Device> devices_to_use(Driver& driver, const std::vector<std::string>& wanted);

}  // namespace pullman::nic
