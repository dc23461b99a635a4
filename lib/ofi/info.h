// fi_getinfo: compares what this provider can do with what an application asks for.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace pullman::ofi {

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out);

}  // namespace pullman::ofi
