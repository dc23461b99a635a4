// The one thing that libfabric is given: what this provider is called, and where it begins.
#pragma once

#include <rdma/providers/fi_prov.h>

namespace pullman::ofi {

inline constexpr char kName[] = "pullman";

// The same object always: libfabric keeps a pointer to it.
fi_provider& provider();

}  // namespace pullman::ofi
