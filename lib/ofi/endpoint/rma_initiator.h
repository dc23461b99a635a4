// Reads from memory that a peer has registered, and writes to it (fi_rma(3)).
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/transport.h"

namespace pullman::ofi {

class RmaInitiator {
 public:
  RmaInitiator(Transport& transport, Connections& connections, OutstandingOperations& operations)
      : transport_(transport), connections_(connections), operations_(operations) {}

  ssize_t begin(const MemoryCall& call);

 private:
  Status write(const MemoryCall& call, PeerId peer, Operation& operation);
  Status read(const MemoryCall& call, PeerId peer, Operation& operation);

  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
};

}  // namespace pullman::ofi
