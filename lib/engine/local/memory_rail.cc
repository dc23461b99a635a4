#include "engine/local/memory_rail.h"

#include <cstring>

#include "base/check.h"

namespace pullman::engine {

using channel::Packet;

MemoryRail::~MemoryRail() {
  PULLMAN_DCHECK(in_flight_.empty());
}

bool MemoryRail::send(Packet& packet) {
  const std::span<const std::byte> body = packet.body();
  std::byte* place = pair_.out().reserve(body.size() + packet.payload_bytes);
  if (place == nullptr) return false;
  std::memcpy(place, body.data(), body.size());
  if (packet.payload_bytes != 0) {
    std::memcpy(place + body.size(), packet.payload, packet.payload_bytes);
  }
  pair_.out().commit();
  packet.number = pair_.out().position();
  in_flight_.push_back(packet);
  return true;
}

Packet* MemoryRail::take_read() {
  if (in_flight_.empty() || in_flight_.front().number > pair_.out().done()) return nullptr;
  return take_unread();
}

Packet* MemoryRail::take_unread() {
  if (in_flight_.empty()) return nullptr;
  Packet& packet = in_flight_.front();
  in_flight_.pop_front();
  return &packet;
}

// The peer says that it has ended after its last record, so that has to be asked first.
bool MemoryRail::is_over() {
  if (pair_.in().is_corrupt()) return true;
  return pair_.has_ended() && !pair_.in().front();
}

}  // namespace pullman::engine
