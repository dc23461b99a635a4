#include "wire/memory.h"

#include <algorithm>

#include "wire/bytes.h"

namespace pullman::wire {

std::size_t put_memory(std::byte* out, const MemoryOffer& offer) {
  put_frame_head(out, FrameType::kMemory, kMemorySecretBytes + offer.name.size());
  std::byte* at = std::copy(offer.secret.begin(), offer.secret.end(), out + kFrameHeadBytes);
  std::transform(offer.name.begin(), offer.name.end(), at,
                 [](char letter) { return static_cast<std::byte>(letter); });
  return kFrameHeadBytes + kMemorySecretBytes + offer.name.size();
}

std::optional<MemoryOffer> decode_memory(std::span<const std::byte> body) {
  if (body.size() < kMemorySecretBytes || body.size() > kMemorySecretBytes + kMaxMemoryName) {
    return std::nullopt;
  }
  MemoryOffer offer;
  std::copy_n(body.begin(), kMemorySecretBytes, offer.secret.begin());
  const auto name = body.subspan(kMemorySecretBytes);
  offer.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  return offer;
}

}  // namespace pullman::wire
