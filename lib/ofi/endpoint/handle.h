// The handle that an application holds: of an endpoint, a context of a scalable endpoint, or an
// alias of either with default flags of its own.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "ofi/calls.h"
#include "ofi/endpoint/lane.h"
#include "ofi/fids.h"

namespace pullman::ofi {

class Endpoint;

struct EndpointHandle : fid_ep {
  static EndpointHandle& of(fid_ep* handle) { return static_cast<EndpointHandle&>(*handle); }
  static EndpointHandle& of(struct fid* plain) { return object_of<EndpointHandle, fid_ep>(plain); }

  // Starts the operation on the lane of this handle. Defined in endpoint.h.
  template <typename Call>
  ssize_t call(Call call) const;

  Endpoint* endpoint = nullptr;
  Lane* lane = nullptr;          // for calls made with this handle
  std::uint64_t send_flags = 0;  // for calls without flags
  std::uint64_t receive_flags = 0;
};

}  // namespace pullman::ofi
