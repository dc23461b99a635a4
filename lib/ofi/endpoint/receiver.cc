#include "ofi/endpoint/receiver.h"

#include <rdma/fi_errno.h>

#include "ofi/endpoint/failed_call.h"

namespace pullman::ofi {

ssize_t Receiver::begin(const ReceiveCall& call) {
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  if (call.count > kMaxSegments) return -FI_EINVAL;
  const PeerId source = poster_.source_of(call);
  if (poster_.lacks_source(call, source)) return -FI_EINVAL;
  if ((call.flags & Peek::kFlags) != 0) return peek_.begin(call, source);
  if (call.space == Space::kMessages) {
    const bool multi = (call.flags & FI_MULTI_RECV) != 0;
    if (multi && (call.count != 1 || call.segments[0].iov_len == 0)) return -FI_EINVAL;
    MultiReceiveQueue& queue = call.lane->multi_receive;
    if (queue.active()) {
      queue.append(call);
      return 0;
    }
    if (multi) {
      queue.begin(call);
      multi_receiver_.refill(*call.lane);
      return 0;
    }
  }
  return poster_.post(call, source);
}

bool Receiver::cancel(Lane& lane, void* context) {
  if (Operation* const operation = operations_.find_receive(lane, context)) {
    if (MultiReceiveBuffer* const buffer = operation->multi_receive) {
      buffer->used_up = true;  // a message that is arriving is the buffer's last
      buffer->notify_owner();
    }
    transport_->cancel(operation->request);  // its completion reports it; too late is no error
    return true;
  }
  ReceiveCall waiting;
  if (!lane.multi_receive.withdraw(context, waiting)) return false;
  report_failure(waiting, Status::kCancelled);
  return true;
}

}  // namespace pullman::ofi
