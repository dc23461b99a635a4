// Describes the NIC of the first rail, as the kernel reports it (fi_info::nic).
#pragma once

#include <rdma/fabric.h>

#include "ofi/endpoint/requested_address.h"

namespace pullman::ofi {

// Describes the first NIC that an endpoint at that address would use; fi_freeinfo() frees it.
// Returns null if there is none, if a driver is asked for that does not use the kernel's
// interfaces, or if the settings are invalid: opening the endpoint reports that. It is a guess:
// opening determines anew which NICs are up.
fid_nic* describe_nic(const RequestedAddress& requested);

}  // namespace pullman::ofi
