// How an address is reached from an interface, as the kernel would send there. Cold.
#pragma once

#include "nic/port.h"

namespace pullman::nic {

// From the address `own` of `device`. What cannot be told is kRouted: perhaps.
//
// The loopback reaches itself only. An address of the same subnet, or an IPv6 link-local one from
// another such, is direct; of all others the kernel is asked for its route, which must lead through
// this interface.
Reach reach_from(const Device& device, const Address& own, const Address& to);

}  // namespace pullman::nic
