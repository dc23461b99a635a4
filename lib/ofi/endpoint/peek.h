// Receives that are about unexpected messages: FI_PEEK finds one, FI_CLAIM keeps it for the context
// of the call, FI_DISCARD drops it. A later call with FI_CLAIM and that context receives it.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/progress.h"
#include "ofi/endpoint/receive_poster.h"
#include "ofi/endpoint/transport.h"

namespace pullman::ofi {

class Peek {
 public:
  static constexpr std::uint64_t kFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

  Peek(Transport& transport, Connections& connections, OutstandingOperations& operations,
       ReceivePoster& poster, EndpointProgress& progress)
      : transport_(transport),
        connections_(connections),
        operations_(operations),
        poster_(poster),
        progress_(progress) {}

  // Handles a call with one of those flags.
  ssize_t begin(const ReceiveCall& call, PeerId source);
  // The lane closes: drops the messages that were claimed there.
  void discard_claimed(Lane& lane);

 private:
  ssize_t peek(const ReceiveCall& call, PeerId source);
  ssize_t receive_claimed(const ReceiveCall& call);

  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
  ReceivePoster& poster_;
  EndpointProgress& progress_;
};

}  // namespace pullman::ofi
