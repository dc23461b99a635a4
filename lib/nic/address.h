// Addresses of NIC ports: as text, as a sockaddr, and on the wire.
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

// Converts a sockaddr_in or sockaddr_in6; nothing for another family.
std::optional<Address> from_sockaddr(const sockaddr* address, socklen_t length);

// Converts to a sockaddr; returns its length, or 0 for an opaque address.
socklen_t to_sockaddr(const Address& address, sockaddr_storage& out);

// Makes an address that only its fabric understands.
Address from_opaque(std::span<const std::byte> bytes);

// Returns "10.0.0.1:7100", "[fe80::1%2]:7100", or "hex:0a1b..." for an opaque one; host_string()
// leaves off the port.
std::string to_string(const Address& address);
std::string host_string(const Address& address);

std::uint16_t port_of(const Address& address);
Address with_port(const Address& address, std::uint16_t port);
bool same_host(const Address& a, const Address& b);
// Whether they are the same port of the same host as two hosts see it: scopes of IPv6 addresses are
// local to each host.
bool same_port(const Address& a, const Address& b);

// An order of addresses that means nothing, for maps.
struct AddressOrder {
  bool operator()(const Address& a, const Address& b) const;
};

// The address of a process that the relay reaches, made of the IP address of its command channel,
// and back (wire.md 5.3). As text it is "relay:10.0.0.1:7100". Other addresses stay as they are.
Address relayed(const Address& address);
Address unrelayed(const Address& address);
bool is_relayed(const Address& address);

// Reads "HOST:PORT", "[V6]:PORT", "HOST" (then `default_port`), "hex:...", or any but the last
// behind "relay:"; HOST may be a name, which is looked up. On failure returns nothing and puts the
// reason into `why`.
std::optional<Address> parse(std::string_view text, std::uint16_t default_port, std::string& why);

}  // namespace pullman::nic
