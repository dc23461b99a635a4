#include "ofi/endpoint/multi_receiver.h"

#include <rdma/fi_errno.h>

#include "ofi/endpoint/failed_call.h"
#include "ofi/errors.h"

namespace pullman::ofi {

void MultiReceiver::refill() {
  operations_.set_refill_due(false);
  lanes_.for_each([this](Lane& lane) { refill(lane); });
}

void MultiReceiver::refill(Lane& lane) {
  MultiReceiveQueue& queue = lane.multi_receive;
  for (;;) {
    const bool busy = queue.active() && queue.buffer().in_flight != 0;
    if (queue.active() && queue.buffer().used_up && !busy) queue.end();
    if (queue.active()) {
      if (busy || !post_buffer(lane)) return;
    } else if (queue.any_waiting()) {
      const ReceiveCall next = queue.first_waiting();
      if ((next.flags & FI_MULTI_RECV) != 0) {
        queue.begin_first_waiting();
      } else if (!post_waiting(next)) {
        operations_.set_refill_due(true);
        return;
      }
      queue.drop_first_waiting();
    } else {
      return;
    }
  }
}

// A failure that would have refused the receive when it was posted writes an error entry now.
// Returns false if no operation is left for it.
bool MultiReceiver::post_waiting(const ReceiveCall& call) {
  const PeerId source = poster_.source_of(call);
  if (poster_.lacks_source(call, source)) {
    report_failure(call, Status::kUnknownPeer);
    return true;
  }
  const ssize_t result = poster_.post(call, source);
  if (result == -FI_EAGAIN) return false;
  if (result < 0) report_failure(call, status_of(static_cast<int>(-result)));
  return true;
}

// Returns true if the buffer took a message at once, or never will: there may be more to post.
bool MultiReceiver::post_buffer(Lane& lane) {
  MultiReceiveBuffer& buffer = lane.multi_receive.buffer();
  const PeerId source = poster_.source_of(buffer.call);
  if (poster_.lacks_source(buffer.call, source)) {
    buffer.used_up = true;
    report_failure(buffer.call, Status::kUnknownPeer);
    return true;
  }
  Operation* operation = operations_.take(buffer.call);
  if (operation == nullptr) {
    operations_.set_refill_due(true);
    return false;
  }
  operation->multi_receive = &buffer;
  ++buffer.in_flight;
  const iovec rest{buffer.at, buffer.left};
  ReceiveCall call = buffer.call;
  call.segments = &rest;
  call.count = 1;
  const Status status = poster_.start(call, source, *operation);
  if (operations_.settle(*operation, status) < 0) {
    buffer.used_up = true;
    --buffer.in_flight;
    report_failure(buffer.call, status);
  }
  return buffer.in_flight == 0;
}

}  // namespace pullman::ofi
