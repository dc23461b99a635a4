// The available drivers and their devices. Cold: called once, at set-up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nic/choice.h"
#include "nic/port.h"

namespace pullman::nic {

// Returns the names for make_driver().
std::vector<std::string> driver_names();

// Resolves Config::driver: a name stays; "auto" becomes fabric if a libfabric provider is asked for
// or a device that bypasses the kernel is up, else udp.
std::string driver_for(const std::string& name, const std::string& provider);

// Returns the preferred driver, given fabric's devices.
std::string best_driver(const std::vector<Device>& of_fabric);

// `provider`: fabric's libfabric provider, empty for the best available. Throws NicError, which
// lists the known names, for an unknown name.
std::unique_ptr<Driver> make_driver(const std::string& name, const std::string& provider);

// Returns the driver's devices, each with its distance.
std::vector<Device> devices_of(Driver& driver);

// Returns those to use (see choose_devices()); throws NicError if there are none.
std::vector<Device> devices_to_use(Driver& driver, const std::vector<std::string>& wanted,
                                   const Most& most);

}  // namespace pullman::nic
