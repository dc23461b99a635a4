// What fi_info says of hardware (fi_info::nic): the NIC of the first rail, as the kernel tells it.
#pragma once

#include <rdma/fabric.h>

#include "ofi/endpoint/requested_address.h"

namespace pullman::ofi {

// Of the first NIC that an endpoint there uses; fi_freeinfo() closes it. Null if there is none, if
// a driver is asked for that does not work on the kernel's interfaces, or if the settings cannot be
// read: opening the endpoint says why. A guess: which NICs are up is determined anew then.
fid_nic* describe_nic(const RequestedAddress& requested);

}  // namespace pullman::ofi
