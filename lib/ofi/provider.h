// The object that libfabric is given: the provider's name and its entry points.
#pragma once

#include <rdma/providers/fi_prov.h>

namespace pullman::ofi {

inline constexpr char kName[] = "pullman";

// Returns the same object always: libfabric keeps a pointer to it.
fi_provider& provider();

}  // namespace pullman::ofi
