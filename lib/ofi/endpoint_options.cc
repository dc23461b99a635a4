// Endpoint: its names, its options, its aliases.
#include <rdma/fi_errno.h>

#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"
#include "ofi/guarded.h"
#include "ofi/options.h"

namespace pullman::ofi {

int Endpoint::get_name(void* out, std::size_t* length) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    open_context();
    const auto address = Address::from_text(context_->address());
    if (!address) return -FI_EADDRNOTAVAIL;
    const std::size_t room = *length;
    *length = Format(domain_.address_format()).write(*address, out, room);
    return *length > room ? -FI_ETOOSMALL : 0;
  });
}

int Endpoint::set_name(const void* address, std::size_t length) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (context_) return -FI_EOPBADSTATE;
    const auto read = Format(domain_.address_format()).read(address, length);
    if (!read) return -FI_EINVAL;
    requested_address_.own = read;
    return 0;
  });
}

int Endpoint::get_option(const Lane& lane, int name, void* out, std::size_t* length) {
  return read_option(name, lane.shared.min_room(), out, length);
}

int Endpoint::set_option(Lane& lane, int name, const void* value, std::size_t length) {
  std::size_t bytes = 0;
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (!take_size(value, length, bytes)) return -FI_EINVAL;
  Locked locked(domain_.lock());
  lane.shared.set_min_room(bytes);
  return 0;
}

int Endpoint::make_alias(const EndpointHandle& original, struct fi_alias& wish) {
  return guarded([&]() -> int {
    const bool sends = (wish.flags & FI_TRANSMIT) != 0;
    const bool receives = (wish.flags & FI_RECV) != 0;
    if (sends == receives || wish.fid == nullptr) return -FI_EINVAL;
    Locked locked(domain_.lock());
    auto* alias = new EndpointHandle(original);
    const std::uint64_t flags = wish.flags & ~(FI_TRANSMIT | FI_RECV);
    (sends ? alias->send_flags : alias->receive_flags) = flags;
    ++alias->lane->aliases;
    *wish.fid = &alias->fid;
    return 0;
  });
}

}  // namespace pullman::ofi
