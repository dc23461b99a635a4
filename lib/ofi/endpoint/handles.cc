// Endpoint: the handles of its contexts and aliases, its names and its options.
#include <rdma/fi_errno.h>

#include "ofi/capabilities.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/guarded.h"
#include "ofi/options.h"

namespace pullman::ofi {
namespace {

// Takes the flags of the attributes that the application gives, and fills in what the context has.
template <typename Attributes>
void apply(Attributes* attributes, std::uint64_t& flags) {
  if (attributes == nullptr) return;
  flags = attributes->op_flags;
  describe(*attributes);
}

}  // namespace

int Endpoint::open_transmit(int index, fi_tx_attr* attributes, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    ScalableContext* const opened =
        lanes_.open(Lanes::Direction::kTransmit, index, handle_, context);
    if (opened == nullptr) return -FI_EINVAL;
    apply(attributes, opened->handle.send_flags);
    *out = &opened->handle;
    return 0;
  });
}

int Endpoint::open_receive(int index, fi_rx_attr* attributes, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    ScalableContext* const opened =
        lanes_.open(Lanes::Direction::kReceive, index, handle_, context);
    if (opened == nullptr) return -FI_EINVAL;
    apply(attributes, opened->handle.receive_flags);
    *out = &opened->handle;
    return 0;
  });
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

int Endpoint::get_name(void* out, std::size_t* length) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    open_transport();
    const auto address = Address::from_text(transport_->address());
    if (!address) return -FI_EADDRNOTAVAIL;
    const std::size_t room = *length;
    *length = Format(domain_.address_format()).write(*address, out, room);
    return *length > room ? -FI_ETOOSMALL : 0;
  });
}

int Endpoint::set_name(const void* address, std::size_t length) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (transport_.is_open()) return -FI_EOPBADSTATE;
    const auto read = Format(domain_.address_format()).read(address, length);
    if (!read) return -FI_EINVAL;
    transport_.set_source(*read);
    return 0;
  });
}

int Endpoint::get_option(const Lane& lane, int name, void* out, std::size_t* length) {
  return read_option(name, lane.multi_receive.min_room(), out, length);
}

int Endpoint::set_option(Lane& lane, int name, const void* value, std::size_t length) {
  std::size_t bytes = 0;
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (!take_size(value, length, bytes)) return -FI_EINVAL;
  Locked locked(domain_.lock());
  lane.multi_receive.set_min_room(bytes);
  return 0;
}

}  // namespace pullman::ofi
