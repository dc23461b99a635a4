// Addresses of NIC ports: as people write them, as sockets want them, as they travel.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wire/hello.h"

namespace pullman::nic {

using Address = wire::WireAddress;

// From a sockaddr_in or sockaddr_in6; nothing for another family.
std::optional<Address> from_sockaddr(const sockaddr* address, socklen_t length);

// Into a sockaddr; its length, or 0 for an opaque address.
socklen_t to_sockaddr(const Address& address, sockaddr_storage& out);

// An address only its fabric understands.
Address from_opaque(std::span<const std::byte> bytes);

// "10.0.0.1:7100", "[fe80::1%2]:7100", or "hex:0a1b..." for opaque ones. `without port` leaves it
// off.
std::string to_string(const Address& address);
std::string host_string(const Address& address);

std::uint16_t port_of(const Address& address);
Address with_port(const Address& address, std::uint16_t port);
bool same_host(const Address& a, const Address& b);
// The same port of the same host, as two hosts see it: scopes of IPv6 addresses are local to each.
bool same_port(const Address& a, const Address& b);

// Reads "HOST:PORT", "[V6]:PORT", "HOST" (then `default_port`) or "hex:..."; HOST may be a name,
// which is looked up. On failure returns nothing and puts a sentence into `why`.
std::optional<Address> parse(std::string_view text, std::uint16_t default_port, std::string& why);

}  // namespace pullman::nic
