#include "nic/receive_slab.h"

namespace pullman::nic {

ReceiveSlab::ReceiveSlab(std::size_t buffers)
    : memory_(new std::byte[buffers * kStride]), users_(buffers, 0) {
  free_.reserve(buffers);
  for (std::size_t i = buffers; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

}  // namespace pullman::nic
