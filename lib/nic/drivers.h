// The drivers there are, and their devices. Cold: called once, at set-up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/choice.h"
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

// The driver's devices, each with its distance from here.
std::vector<Device> devices_of(Driver& driver);

// Those of them to use (see choose_devices()); a problem is a NicError.
std::vector<Device> devices_to_use(Driver& driver, const std::vector<std::string>& wanted,
                                   const Most& most);

}  // namespace pullman::nic
