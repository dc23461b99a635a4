#include "nic/prefix.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace pullman::nic {
namespace {

unsigned bits_of(const Address& address) {
  return address.kind == 4 ? 32 : 128;
}

std::optional<Address> parse_host(const std::string& text) {
  sockaddr_in ipv4{};
  ipv4.sin_family = AF_INET;
  if (inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) == 1) {
    return from_sockaddr(reinterpret_cast<const sockaddr*>(&ipv4), sizeof ipv4);
  }
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, text.c_str(), &ipv6.sin6_addr) == 1) {
    return from_sockaddr(reinterpret_cast<const sockaddr*>(&ipv6), sizeof ipv6);
  }
  return std::nullopt;
}

Prefix known(const char* text) {
  return *parse_prefix(text);
}

}  // namespace

std::optional<Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto network = parse_host(std::string(text.substr(0, slash)));
  if (!network) return std::nullopt;
  unsigned bits = bits_of(*network);
  if (slash != std::string_view::npos) {
    const char* const first = text.data() + slash + 1;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(first, last, bits);
    if (error != std::errc{} || end != last || bits > bits_of(*network)) return std::nullopt;
  }
  return Prefix{.network = *network, .bits = static_cast<std::uint8_t>(bits)};
}

bool contains(const Prefix& prefix, const Address& address) {
  if (address.kind != prefix.network.kind || (address.kind != 4 && address.kind != 6)) return false;
  const std::size_t whole = prefix.bits / 8u;
  const unsigned rest = prefix.bits % 8u;
  const auto& network = prefix.network.bytes;
  if (!std::equal(network.begin(), network.begin() + whole, address.bytes.begin())) return false;
  if (rest == 0) return true;
  return ((network[whole] ^ address.bytes[whole]) >> (8 - rest)) == std::byte{0};
}

bool is_link_local(const Address& address) {
  return contains(known("fe80::/10"), address) || contains(known("169.254.0.0/16"), address);
}

bool is_loopback(const Address& address) {
  return contains(known("::1"), address) || contains(known("127.0.0.0/8"), address);
}

}  // namespace pullman::nic
