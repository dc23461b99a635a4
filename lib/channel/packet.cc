#include "channel/packet.h"

#include <algorithm>

#include "base/check.h"

namespace pullman::channel {

PacketPool::PacketPool(std::size_t capacity, std::size_t large_bytes) : capacity_(capacity) {
  small_.bytes_each = Packet::kSmallBytes;
  large_.bytes_each = large_bytes;
}

void PacketPool::grow(SizeClass& size_class) {
  const std::size_t count = std::min(kBlock, capacity_ - size_class.made);
  if (count == 0) return;
  auto packets = std::make_unique<Packet[]>(count);
  auto memory = std::make_unique<std::byte[]>(count * size_class.bytes_each);
  for (std::size_t i = 0; i < count; ++i) {
    packets[i].bytes = memory.get() + i * size_class.bytes_each;
    packets[i].capacity = static_cast<std::uint32_t>(size_class.bytes_each);
    size_class.free.push_back(packets[i]);
  }
  size_class.made += count;
  size_class.packets.push_back(std::move(packets));
  size_class.memory.push_back(std::move(memory));
}

Packet* PacketPool::take(std::size_t bytes) {
  PULLMAN_DCHECK(bytes <= large_.bytes_each);
  SizeClass& size_class = bytes <= small_.bytes_each ? small_ : large_;
  if (size_class.free.empty()) grow(size_class);
  if (size_class.free.empty()) return nullptr;
  Packet& packet = size_class.free.front();
  size_class.free.pop_front();
  packet.used = wire::kHeaderBytes;
  packet.payload = nullptr;
  packet.payload_bytes = 0;
  packet.rest = 0;
  packet.message = nullptr;
  packet.state = PacketState::kQueued;
  packet.is_probe = false;
  packet.is_path_probe = false;
  ++in_use_;
  return &packet;
}

void PacketPool::give_back(Packet& packet) {
  PULLMAN_DCHECK(packet.state != PacketState::kFree && !packet.in_channel);
  PULLMAN_DCHECK(!packet.checked_in() && !packet.QueueHook::is_linked());
  packet.state = PacketState::kFree;
  SizeClass& size_class = packet.capacity == small_.bytes_each ? small_ : large_;
  size_class.free.push_front(packet);
  --in_use_;
}

}  // namespace pullman::channel
