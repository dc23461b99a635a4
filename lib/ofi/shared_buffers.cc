#include "ofi/shared_buffers.h"

#include <algorithm>

namespace pullman::ofi {

SharedBuffer::SharedBuffer(const ReceiveCall& posted, std::size_t least)
    : call(posted),
      at(static_cast<std::byte*>(posted.pieces[0].iov_base)),
      left(posted.pieces[0].iov_len),
      least_room(std::max<std::size_t>(least, 1)) {
  call.pieces = nullptr;
}

void SharedBuffer::use(std::size_t bytes, bool usable) {
  const std::size_t used = std::min(bytes, left);
  at += used;
  left -= used;
  used_up = used_up || !usable || left < least_room;
}

void SharedBuffers::begin(const ReceiveCall& call) {
  active_ = true;
  buffer_ = SharedBuffer(call, least_room_);
}

bool SharedBuffers::withdraw(void* context, ReceiveCall& out) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& one) {
    return one.kept.call().context == context;
  });
  if (found == waiting_.end()) return false;
  out = found->kept.call();
  waiting_.erase(found);
  return true;
}

}  // namespace pullman::ofi
