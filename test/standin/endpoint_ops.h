// The endpoint's entry points, which turn libfabric's calls into the endpoint's own.
#pragma once

#include <rdma/fi_endpoint.h>

namespace pullman::standin {

// Fills in a new endpoint's base with all its operations.
fid_ep endpoint_ops(void* user_context);

}  // namespace pullman::standin
