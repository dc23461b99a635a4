#include "ofi/endpoint/requested_address.h"

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
  const auto destination = read(info, info.dest_addr, info.dest_addrlen);
  return {.source = read(info, info.src_addr, info.src_addrlen),
          .reaches_loopback = destination && is_loopback(*destination)};
}

Config RequestedAddress::config() const {
  Config config = read_settings();
  if (source) config.port = source->port();
  if (source && !source->is_any()) {
    config.nics = {source->host()};
  } else if (reaches_loopback && config.nics.empty()) {
    // No other NIC reaches a loopback address.
    config.nics = {"lo"};
  }
  return config;
}

}  // namespace pullman::ofi
