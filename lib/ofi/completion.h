// One entry of a completion queue, independent of the format in which it is read.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "pullman/status.h"

namespace pullman::ofi {

struct Completion {
  void* context = nullptr;  // the application's, of the operation
  std::uint64_t flags = 0;  // FI_SEND, FI_RECV, FI_TAGGED, ...
  std::size_t length = 0;   // bytes received
  void* buffer = nullptr;   // where in a multi-receive buffer the message is
  std::uint64_t data = 0;   // immediate data, if the flags say so
  std::uint64_t tag = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  std::size_t cut_off = 0;  // bytes of the message that did not fit into the buffer
  int error = 0;            // 0: not an error entry
  Status why = Status::kOk;
};

}  // namespace pullman::ofi
