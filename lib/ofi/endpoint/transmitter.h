// Sends of every kind (fi_msg(3), fi_tagged(3)). Copies injects, and messages of an application
// that waits only for its buffer.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "ofi/calls.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/transport.h"
#include "pullman/operations.h"

namespace pullman::ofi {

class Transmitter {
 public:
  Transmitter(Transport& transport, Connections& connections, OutstandingOperations& operations)
      : transport_(transport), connections_(connections), operations_(operations) {}

  ssize_t begin(const SendCall& call);

 private:
  SendOptions options_for(const SendCall& call) const;
  bool inject(const SendCall& call, PeerId peer);
  Status start(const SendCall& call, PeerId peer, Operation& operation);
  Status start_inject(const SendCall& call, PeerId peer, Operation& operation);
  Status start_copied(const SendCall& call, std::size_t length, PeerId peer, Operation& operation);

  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
  Request injected_;  // for sends that are done when the call returns
};

}  // namespace pullman::ofi
