// Posts the multi-receive buffers of lanes: the next message of the buffer that takes messages,
// and, when it is used up, the receives that wait behind it (see multi_receive.h).
#pragma once

#include "ofi/calls.h"
#include "ofi/endpoint/lanes.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/receive_poster.h"

namespace pullman::ofi {

class MultiReceiver {
 public:
  MultiReceiver(Lanes& lanes, ReceivePoster& poster, OutstandingOperations& operations)
      : lanes_(lanes), poster_(poster), operations_(operations) {}

  // A lane may have something to post. Not from inside a completion: this calls the context.
  bool is_refill_due() const { return operations_.is_refill_due(); }
  void refill();
  void refill(Lane& lane);

 private:
  bool post_waiting(const ReceiveCall& call);
  bool post_buffer(Lane& lane);

  Lanes& lanes_;
  ReceivePoster& poster_;
  OutstandingOperations& operations_;
};

}  // namespace pullman::ofi
