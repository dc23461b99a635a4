// The addresses in the fi_info of an endpoint, and the configuration that they imply.
#pragma once

#include <rdma/fabric.h>

#include <optional>

#include "ofi/address.h"
#include "pullman/config.h"

namespace pullman::ofi {

struct RequestedAddress {
  static RequestedAddress from(const fi_info& info);
  // The settings of the environment, with the NIC of the source address. Throws Error(kBadOption).
  Config config() const;

  std::optional<Address> source;
  bool reaches_loopback = false;  // the destination is a loopback address
};

}  // namespace pullman::ofi
