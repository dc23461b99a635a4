#include "ofi/requested_address.h"

#include <string>

#include "ofi/settings.h"

namespace pullman::ofi {
namespace {

bool is_loopback(const Address& address) {
  const std::string host = address.host();
  return host == "::1" || host.starts_with("127.");
}

std::optional<Address> read(const fi_info& info, const void* address, std::size_t length) {
  if (address == nullptr) return std::nullopt;
  return Format(info.addr_format).read(address, length);
}

}  // namespace

RequestedAddress RequestedAddress::from(const fi_info& info) {
  const auto to = read(info, info.dest_addr, info.dest_addrlen);
  return {.own = read(info, info.src_addr, info.src_addrlen),
          .near_loopback = to && is_loopback(*to)};
}

Config RequestedAddress::config() const {
  Config config = read_settings();
  if (own) config.port = own->port();
  if (own && !own->is_any()) {
    config.nics = {own->host()};
  } else if (near_loopback && config.nics.empty()) {
    // Who says that it wants to reach the loopback's address needs the loopback.
    config.nics = {"lo"};
  }
  return config;
}

}  // namespace pullman::ofi
