// The card of a process: where it can be reached, in few bytes. Versioned, so that processes of
// another version are told apart before a packet is sent.
//
//   version  8 bits   1
//   count    8 bits   of addresses
//   address           each as in wire.md 5.3: 8 bytes for IPv4, 24 at most for IPv6
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "nic/address.h"
#include "world/bytes.h"

namespace pullman::world {

// A NIC each, the best first; at most kMaxAddresses of them count.
using Addresses = std::vector<nic::Address>;
inline constexpr std::size_t kMaxAddresses = 8;

// Returns the card with as many of the addresses, from the first, as fit into `limit` bytes.
Bytes card_of(const Addresses& addresses, std::size_t limit);

// Removes a card from the front of `in`. Throws Error(kIncompatible) if it is one of another
// version, or none.
Addresses take_card(std::span<const std::byte>& in);

}  // namespace pullman::world
