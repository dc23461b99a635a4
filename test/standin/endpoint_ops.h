// The endpoint's entry points: libfabric's calls turned into the endpoint's own.
#pragma once

#include <rdma/fi_endpoint.h>

namespace pullman::standin {

// The base of a new endpoint, all its operations filled in.
fid_ep endpoint_ops(void* user_context);

}  // namespace pullman::standin
