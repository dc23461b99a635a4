#include "nic/fabric/handles.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include "nic/port.h"

namespace pullman::nic::fabric {

void require_ok(int result, const char* what, const std::string& device) {
  if (result == 0) return;
  throw NicError(fmt::format("cannot {} on {}: {}", what, device, fi_strerror(-result)));
}

}  // namespace pullman::nic::fabric
