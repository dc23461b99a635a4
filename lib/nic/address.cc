#include "nic/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <boost/algorithm/hex.hpp>
#include <charconv>
#include <cstring>
#include <memory>
#include <tuple>

namespace pullman::nic {
namespace {

constexpr std::uint8_t kInet = 4;
constexpr std::uint8_t kInet6 = 6;
constexpr std::uint8_t kOpaque = 255;
constexpr std::string_view kRelayed = "relay:";
constexpr std::size_t kInetBytes = 4;
constexpr std::size_t kInet6Bytes = 16;

std::size_t host_bytes(const Address& address) {
  return address.kind == kInet ? kInetBytes : kInet6Bytes;
}

// Splits "HOST:PORT", "[V6]:PORT", "V6" and "HOST".
bool split(std::string_view text, std::string& host, std::string& port) {
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return false;
    host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return false;
    port = rest.empty() ? rest : rest.substr(1);
    return true;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.find(':') != colon) {
    host = text;
    return true;
  }
  host = text.substr(0, colon);
  port = text.substr(colon + 1);
  return true;
}

std::optional<Address> parse_opaque(std::string_view hex, std::string& why) {
  std::string bytes;
  try {
    boost::algorithm::unhex(hex.begin(), hex.end(), std::back_inserter(bytes));
  } catch (const boost::algorithm::hex_decode_error&) {
    why = fmt::format("'hex:{}' is not an even number of hexadecimal digits", hex);
    return std::nullopt;
  }
  if (bytes.empty() || bytes.size() > wire::kMaxAddressBytes) {
    why = fmt::format("an opaque address has 1 to {} bytes, this one {}", wire::kMaxAddressBytes,
                      bytes.size());
    return std::nullopt;
  }
  return from_opaque(std::as_bytes(std::span(bytes)));
}

}  // namespace

std::optional<Address> from_sockaddr(const sockaddr* address, socklen_t length) {
  Address out;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    out.kind = kInet;
    out.length = 6;
    std::memcpy(out.bytes.data(), &in->sin_addr, kInetBytes);
    std::memcpy(out.bytes.data() + kInetBytes, &in->sin_port, 2);
    return out;
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    const std::uint32_t scope = htonl(in->sin6_scope_id);
    out.kind = kInet6;
    out.length = 22;
    std::memcpy(out.bytes.data(), &in->sin6_addr, kInet6Bytes);
    std::memcpy(out.bytes.data() + kInet6Bytes, &in->sin6_port, 2);
    std::memcpy(out.bytes.data() + kInet6Bytes + 2, &scope, 4);
    return out;
  }
  return std::nullopt;
}

socklen_t to_sockaddr(const Address& address, sockaddr_storage& out) {
  std::memset(&out, 0, sizeof out);
  if (address.kind == kInet) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out);
    in->sin_family = AF_INET;
    std::memcpy(&in->sin_addr, address.bytes.data(), kInetBytes);
    std::memcpy(&in->sin_port, address.bytes.data() + kInetBytes, 2);
    return sizeof(sockaddr_in);
  }
  if (address.kind == kInet6) {
    auto* in = reinterpret_cast<sockaddr_in6*>(&out);
    std::uint32_t scope = 0;
    in->sin6_family = AF_INET6;
    std::memcpy(&in->sin6_addr, address.bytes.data(), kInet6Bytes);
    std::memcpy(&in->sin6_port, address.bytes.data() + kInet6Bytes, 2);
    std::memcpy(&scope, address.bytes.data() + kInet6Bytes + 2, 4);
    in->sin6_scope_id = ntohl(scope);
    return sizeof(sockaddr_in6);
  }
  return 0;
}

Address from_opaque(std::span<const std::byte> bytes) {
  Address out;
  out.kind = kOpaque;
  out.length = static_cast<std::uint8_t>(std::min(bytes.size(), out.bytes.size()));
  std::memcpy(out.bytes.data(), bytes.data(), out.length);
  return out;
}

std::string host_string(const Address& address) {
  if (is_relayed(address)) return fmt::format("{}{}", kRelayed, host_string(unrelayed(address)));
  char text[INET6_ADDRSTRLEN] = "";
  if (address.kind == kInet) {
    inet_ntop(AF_INET, address.bytes.data(), text, sizeof text);
    return text;
  }
  if (address.kind == kInet6) {
    sockaddr_storage storage;
    to_sockaddr(address, storage);
    const auto scope = reinterpret_cast<const sockaddr_in6&>(storage).sin6_scope_id;
    inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
    return scope == 0 ? text : fmt::format("{}%{}", text, scope);
  }
  std::string out = "hex:";
  for (std::size_t i = 0; i < address.length; ++i) {
    out += fmt::format("{:02x}", static_cast<unsigned>(address.bytes[i]));
  }
  return out;
}

std::string to_string(const Address& address) {
  if (is_relayed(address)) return fmt::format("{}{}", kRelayed, to_string(unrelayed(address)));
  if (address.kind == kInet) return fmt::format("{}:{}", host_string(address), port_of(address));
  if (address.kind == kInet6) return fmt::format("[{}]:{}", host_string(address), port_of(address));
  return host_string(address);
}

Address relayed(const Address& address) {
  Address out = address;
  if (address.kind == kInet || address.kind == kInet6) out.kind |= wire::kRelayedKind;
  return out;
}

Address unrelayed(const Address& address) {
  Address out = address;
  if (is_relayed(address)) out.kind &= static_cast<std::uint8_t>(~wire::kRelayedKind);
  return out;
}

bool is_relayed(const Address& address) {
  return address.kind == (kInet | wire::kRelayedKind) ||
         address.kind == (kInet6 | wire::kRelayedKind);
}

std::uint16_t port_of(const Address& address) {
  if (is_relayed(address)) return port_of(unrelayed(address));
  if (address.kind != kInet && address.kind != kInet6) return 0;
  std::uint16_t port = 0;
  std::memcpy(&port, address.bytes.data() + host_bytes(address), 2);
  return ntohs(port);
}

Address with_port(const Address& address, std::uint16_t port) {
  Address out = address;
  if (address.kind != kInet && address.kind != kInet6) return out;
  const std::uint16_t in_order = htons(port);
  std::memcpy(out.bytes.data() + host_bytes(address), &in_order, 2);
  return out;
}

bool same_host(const Address& a, const Address& b) {
  if (is_relayed(a) && is_relayed(b)) return same_host(unrelayed(a), unrelayed(b));
  return with_port(a, 0) == with_port(b, 0);
}

bool same_port(const Address& a, const Address& b) {
  if (is_relayed(a) && is_relayed(b)) return same_port(unrelayed(a), unrelayed(b));
  if (a.kind != kInet6 || b.kind != kInet6) return a == b;
  return std::equal(a.bytes.begin(), a.bytes.begin() + kInet6Bytes + 2, b.bytes.begin());
}

bool AddressOrder::operator()(const Address& a, const Address& b) const {
  return std::tie(a.kind, a.length, a.bytes) < std::tie(b.kind, b.length, b.bytes);
}

std::optional<Address> parse(std::string_view text, std::uint16_t default_port, std::string& why) {
  if (text.starts_with("hex:")) return parse_opaque(text.substr(4), why);
  if (text.starts_with(kRelayed) && !text.substr(kRelayed.size()).starts_with(kRelayed)) {
    const auto behind = parse(text.substr(kRelayed.size()), default_port, why);
    return behind ? std::optional(relayed(*behind)) : std::nullopt;
  }
  std::string host;
  std::string port;
  if (!split(text, host, port) || host.empty()) {
    why = fmt::format("'{}' is not an address: write HOST:PORT or [IPV6]:PORT", text);
    return std::nullopt;
  }
  std::uint16_t number = default_port;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc{} || end != port.data() + port.size() || number == 0) {
      why = fmt::format("'{}' is not a port in '{}': 1 to 65535", port, text);
      return std::nullopt;
    }
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    why = fmt::format("cannot find host '{}': {}", host, gai_strerror(error));
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const auto address = from_sockaddr(found->ai_addr, found->ai_addrlen);
  if (!address) {
    why = fmt::format("host '{}' has neither an IPv4 nor an IPv6 address", host);
    return std::nullopt;
  }
  return with_port(*address, number);
}

}  // namespace pullman::nic
