// How an address is reached from an interface, according to the kernel's routes. Cold.
#pragma once

#include "nic/port.h"

namespace pullman::nic {

// Returns how `to` is reached from the address `own` of `device`; kRouted if that is unknown.
//
// The loopback reaches only itself. An address of the same subnet is direct, and so is an IPv6
// link-local address from another one. For all others the kernel is asked for its route, which must
// use this interface, or there must be another route that uses it and a gateway.
Reach reach_from(const Device& device, const Address& own, const Address& to);

// Whether only a socket that is not bound to the device reaches that address: it belongs to another
// interface of this host, or only routes by other interfaces lead there.
bool only_by_others(const Device& device, const Address& own, const Address& to);

}  // namespace pullman::nic
