#include "ofi/endpoint/multi_receive.h"

#include <algorithm>

namespace pullman::ofi {

MultiReceiveBuffer::MultiReceiveBuffer(const ReceiveCall& posted, std::size_t least)
    : call(posted),
      at(static_cast<std::byte*>(posted.segments[0].iov_base)),
      left(posted.segments[0].iov_len),
      min_room(std::max<std::size_t>(least, 1)) {
  call.segments = nullptr;
}

void MultiReceiveBuffer::use(std::size_t bytes, bool usable) {
  const std::size_t used = std::min(bytes, left);
  at += used;
  left -= used;
  used_up = used_up || !usable || left < min_room;
}

void MultiReceiveQueue::begin(const ReceiveCall& call) {
  active_ = true;
  buffer_ = MultiReceiveBuffer(call, min_room_);
}

bool MultiReceiveQueue::withdraw(void* context, ReceiveCall& out) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.owned.call().context == context;
  });
  if (found == waiting_.end()) return false;
  out = found->owned.call();
  waiting_.erase(found);
  return true;
}

void MultiReceiveQueue::close() {
  waiting_.clear();
  if (active_) buffer_.used_up = true;
}

}  // namespace pullman::ofi
