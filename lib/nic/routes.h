// How an address is reached from an interface, as the kernel would send there. Cold.
#pragma once

#include "nic/port.h"

namespace pullman::nic {

// From the address `own` of `device`. What cannot be told is kRouted: perhaps.
//
// The loopback reaches itself only. An address of the same subnet, or an IPv6 link-local one from
// another such, is direct; of all others the kernel is asked for its route, which must lead through
// this interface, or there must be another that does by a gateway.
Reach reach_from(const Device& device, const Address& own, const Address& to);

// Whether a socket that is bound to the device sends there in vain, and one that is not does not:
// an address of this host on another interface, or one to which only routes by others lead.
bool only_by_others(const Device& device, const Address& own, const Address& to);

}  // namespace pullman::nic
