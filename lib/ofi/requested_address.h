// Where an application wants to be: what it said of addresses, and the NICs that come of it.
#pragma once

#include <rdma/fabric.h>

#include <optional>

#include "ofi/address.h"
#include "pullman/config.h"

namespace pullman::ofi {

struct RequestedAddress {
  static RequestedAddress from(const fi_info& info);
  // The settings, with the NICs of this place. Throws Error(kBadOption).
  Config config() const;

  std::optional<Address> own;  // an address of ours that the application chose
  bool near_loopback = false;  // it wants to reach the loopback's address
};

}  // namespace pullman::ofi
