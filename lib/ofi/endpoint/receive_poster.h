// Posts receives to the Pullman context (fi_msg(3), fi_tagged(3)), and receives messages that were
// claimed. Does not decide when a receive is posted.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/transport.h"
#include "pullman/operations.h"

namespace pullman::ofi {

class ReceivePoster {
 public:
  // `directed`: the endpoint offers FI_DIRECTED_RECV; without it every receive is for any source.
  ReceivePoster(Transport& transport, Connections& connections, OutstandingOperations& operations,
                bool directed)
      : transport_(transport),
        connections_(connections),
        operations_(operations),
        directed_(directed) {}

  bool is_directed(const ReceiveCall& call) const {
    return call.from != FI_ADDR_UNSPEC && directed_;
  }
  PeerId source_of(const ReceiveCall& call) const {
    return is_directed(call) ? connections_.peer(call.from) : kAnyPeer;
  }
  // Whether the call names a source that does not exist, or no longer.
  bool lacks_source(const ReceiveCall& call, PeerId source) const {
    return source == kAnyPeer && is_directed(call);
  }

  ssize_t post(const ReceiveCall& call, PeerId source);
  // Do post() in two steps, for callers that need the operation in between.
  Status start(const ReceiveCall& call, PeerId source, Operation& operation);
  Status start_claimed(const Claimed& claimed, const ReceiveCall& call, Operation& operation);

 private:
  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
  const bool directed_;
};

}  // namespace pullman::ofi
