#include "ofi/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <rdma/fabric.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace pullman::ofi {
namespace {

constexpr std::string_view kUri4 = "fi_sockaddr_in://";
constexpr std::string_view kUri6 = "fi_sockaddr_in6://";
constexpr std::size_t kLongestText = 128;

// A number is a port. Names are left to getaddrinfo(), which would take the lower 16 bits of a
// number.
bool may_be_service(const char* service) {
  if (service == nullptr) return true;
  const std::string_view text = service;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error != std::errc::result_out_of_range || end != text.data() + text.size();
}

}  // namespace

Address Address::any(int family) {
  Address address;
  address.storage_.ss_family = static_cast<sa_family_t>(family);
  return address;
}

std::optional<Address> Address::from(const void* bytes, std::size_t length) {
  if (bytes == nullptr || length < sizeof(sa_family_t)) return std::nullopt;
  sa_family_t family = AF_UNSPEC;
  std::memcpy(&family, bytes, sizeof family);
  Address address;
  address.storage_.ss_family = family;
  if (address.length() == 0 || length < address.length()) return std::nullopt;
  std::memcpy(&address.storage_, bytes, address.length());
  return address;
}

std::optional<Address> Address::from_text(std::string_view text) {
  for (const std::string_view prefix : {kUri4, kUri6}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > kLongestText) return std::nullopt;
  std::string host(text.substr(0, colon));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string service(text.substr(colon + 1));
  return resolve({.node = host.c_str(), .service = service.c_str(), .numeric = true});
}

std::optional<Address> Address::resolve(const Question& question) {
  if (!may_be_service(question.service)) return std::nullopt;
  addrinfo hints{};
  hints.ai_family = question.family;
  hints.ai_socktype = SOCK_DGRAM;
  if (question.numeric) hints.ai_flags |= AI_NUMERICHOST;
  if (question.listening) hints.ai_flags |= AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(question.node, question.service, &hints, &found) != 0) return std::nullopt;
  std::optional<Address> address;
  for (const addrinfo* one = found; one != nullptr && !address; one = one->ai_next) {
    address = from(one->ai_addr, one->ai_addrlen);
  }
  freeaddrinfo(found);
  return address;
}

std::size_t Address::length() const {
  if (family() == AF_INET) return sizeof(sockaddr_in);
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

std::uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? v4().sin_port : v6().sin6_port);
}

void Address::set_port(std::uint16_t port) {
  (family() == AF_INET ? v4().sin_port : v6().sin6_port) = htons(port);
}

bool Address::is_any() const {
  return family() == AF_INET ? v4().sin_addr.s_addr == INADDR_ANY
                             : IN6_IS_ADDR_UNSPECIFIED(&v6().sin6_addr);
}

void Address::advance(std::uint32_t by) {
  if (family() == AF_INET) {
    v4().sin_addr.s_addr = htonl(ntohl(v4().sin_addr.s_addr) + by);
    return;
  }
  std::uint32_t last = 0;
  std::memcpy(&last, &v6().sin6_addr.s6_addr[12], sizeof last);
  last = htonl(ntohl(last) + by);
  std::memcpy(&v6().sin6_addr.s6_addr[12], &last, sizeof last);
}

std::string Address::host() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = family() == AF_INET ? static_cast<const void*>(&v4().sin_addr)
                                            : static_cast<const void*>(&v6().sin6_addr);
  inet_ntop(family(), address, text.data(), text.size());
  std::string host = text.data();
  std::array<char, IF_NAMESIZE> device{};
  if (family() == AF_INET6 && v6().sin6_scope_id != 0 &&
      if_indextoname(v6().sin6_scope_id, device.data()) != nullptr) {
    host += '%';
    host += device.data();
  }
  return host;
}

std::string Address::text() const {
  const std::string port_text = ':' + std::to_string(port());
  return family() == AF_INET ? host() + port_text : '[' + host() + ']' + port_text;
}

std::string Address::uri() const {
  return std::string(family() == AF_INET ? kUri4 : kUri6) + text();
}

std::optional<Address> Format::read(const void* bytes, std::size_t length) const {
  if (bytes == nullptr) return std::nullopt;
  if (format_ == FI_ADDR_STR) {
    const char* text = static_cast<const char*>(bytes);
    return Address::from_text({text, strnlen(text, length == 0 ? kLongestText : length)});
  }
  if (length != 0) return Address::from(bytes, length);
  return Address::from(bytes,
                       format_ == FI_SOCKADDR_IN ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
}

std::size_t Format::write(const Address& address, void* out, std::size_t room) const {
  const std::string text = format_ == FI_ADDR_STR ? address.uri() : std::string();
  const void* bytes = address.bytes();
  std::size_t length = address.length();
  if (format_ == FI_ADDR_STR) {
    bytes = text.c_str();
    length = text.size() + 1;
  }
  if (out != nullptr) std::memcpy(out, bytes, std::min(length, room));
  return length;
}

std::size_t Format::stride() const {
  if (format_ == FI_ADDR_STR) return sizeof(char*);
  return format_ == FI_SOCKADDR_IN6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace pullman::ofi
