#include "nic/receive_slab.h"

namespace pullman::nic {

ReceiveSlab::ReceiveSlab(std::size_t buffers)
    : memory_(make_aligned_bytes(buffers * kStride)),
      users_(buffers, 0),
      free_(buffers),
      free_count_(buffers) {
  for (std::size_t i = 0; i < buffers; ++i) free_[i] = static_cast<std::uint32_t>(buffers - 1 - i);
}

}  // namespace pullman::nic
