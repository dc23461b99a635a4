// Atomic operations on memory that a peer has registered (fi_atomic(3)). Operands are copied before
// a call returns. A result goes to the application's memory; if the call gives several segments for
// it, by way of the operation's own memory.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/transport.h"
#include "pullman/operations.h"

namespace pullman::ofi {

// Whether the call has as many operands, compares and results as its kind needs, and not too many.
bool is_complete(const AtomicCall& call, const Atomic& kind);

class AtomicInitiator {
 public:
  AtomicInitiator(Transport& transport, Connections& connections, OutstandingOperations& operations)
      : transport_(transport), connections_(connections), operations_(operations) {}

  ssize_t begin(const AtomicCall& call);

 private:
  Status start(const AtomicCall& call, Atomic atomic, PeerId peer, Operation& operation);

  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
};

}  // namespace pullman::ofi
