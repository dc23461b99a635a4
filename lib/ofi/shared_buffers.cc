#include "ofi/shared_buffers.h"

#include <algorithm>

namespace pullman::ofi {

void SharedBuffers::begin(const ReceiveCall& call) {
  active_ = true;
  buffer_ = {.call = call,
             .at = static_cast<std::byte*>(call.pieces[0].iov_base),
             .left = call.pieces[0].iov_len};
  buffer_.call.pieces = nullptr;
}

bool SharedBuffers::use(std::size_t bytes) {
  const std::size_t used = std::min(bytes, buffer_.left);
  buffer_.at += used;
  buffer_.left -= used;
  return buffer_.left < std::max<std::size_t>(least_room_, 1);
}

bool SharedBuffers::withdraw(void* context, ReceiveCall& out) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const auto& one) { return one.call().context == context; });
  if (found == waiting_.end()) return false;
  out = found->call();
  waiting_.erase(found);
  return true;
}

}  // namespace pullman::ofi
