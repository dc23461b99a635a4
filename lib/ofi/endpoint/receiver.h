// Receives as the application posts them, and their cancellation: posts them to the context, queues
// them behind a multi-receive buffer, or passes those about unexpected messages to Peek.
#pragma once

#include <sys/types.h>

#include "ofi/calls.h"
#include "ofi/endpoint/multi_receiver.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/peek.h"
#include "ofi/endpoint/receive_poster.h"
#include "ofi/endpoint/transport.h"

namespace pullman::ofi {

class Receiver {
 public:
  Receiver(Transport& transport, OutstandingOperations& operations, ReceivePoster& poster,
           MultiReceiver& multi_receiver, Peek& peek)
      : transport_(transport),
        operations_(operations),
        poster_(poster),
        multi_receiver_(multi_receiver),
        peek_(peek) {}

  ssize_t begin(const ReceiveCall& call);
  // Cancels the first receive of that lane with that context. Returns false if there is none.
  bool cancel(Lane& lane, void* context);

 private:
  Transport& transport_;
  OutstandingOperations& operations_;
  ReceivePoster& poster_;
  MultiReceiver& multi_receiver_;
  Peek& peek_;
};

}  // namespace pullman::ofi
