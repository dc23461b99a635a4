// Posts the multi-receive buffers of lanes: a receive for the next message of the active buffer
// and, when that is used up, the receives that wait behind it (multi_receive.h).
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

  // Whether a lane may have something to post. refill() calls the context, so it must not be called
  // from inside a completion.
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
