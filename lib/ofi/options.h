// The options of endpoints and of shared receive contexts. All are sizes.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstring>

#include "ofi/limits.h"

namespace pullman::ofi {

// `min_room`: the value of FI_OPT_MIN_MULTI_RECV. Returns 0 or an error number.
inline int read_option(int name, std::size_t min_room, void* out, std::size_t* length) {
  if (out == nullptr || length == nullptr) return -FI_EINVAL;
  if (name != FI_OPT_MIN_MULTI_RECV && name != FI_OPT_TX_SIZE && name != FI_OPT_RX_SIZE) {
    return -FI_ENOPROTOOPT;
  }
  const std::size_t value = name == FI_OPT_MIN_MULTI_RECV ? min_room : kQueueSize;
  if (*length < sizeof value) return -FI_ETOOSMALL;
  std::memcpy(out, &value, sizeof value);
  *length = sizeof value;
  return 0;
}

inline bool take_size(const void* value, std::size_t length, std::size_t& out) {
  if (value == nullptr || length != sizeof out) return false;
  std::memcpy(&out, value, sizeof out);
  return true;
}

}  // namespace pullman::ofi
