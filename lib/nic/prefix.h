// Prefixes of IP addresses: "10.0.0.0/8", "fd00::/16".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "nic/address.h"

namespace pullman::nic {

struct Prefix {
  Address network;  // port and scope 0; bits behind the prefix may be set
  std::uint8_t bits = 0;
};

// Reads "ADDRESS/BITS", or an address alone, which is a prefix of full length. Looks up no names.
std::optional<Prefix> parse_prefix(std::string_view text);

// Ignores scopes.
bool contains(const Prefix& prefix, const Address& address);

bool is_link_local(const Address& address);
bool is_loopback(const Address& address);

}  // namespace pullman::nic
