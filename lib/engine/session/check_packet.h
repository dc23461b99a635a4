// The packets that both halves of a connectivity check use.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "wire/check.h"
#include "wire/header.h"

namespace pullman::engine {

inline std::size_t index_of(wire::CheckSize size) {
  return static_cast<std::size_t>(size);
}

// Returns a packet for one CHECK or CHECKED; the frame is still to be written, behind the header.
inline std::vector<std::byte> packet_of(std::size_t bytes, wire::ConnectionId to,
                                        std::uint8_t rail) {
  std::vector<std::byte> packet(bytes);
  wire::PacketHeader header;
  header.type = wire::PacketType::kCheck;
  header.rail = rail;
  header.length = static_cast<std::uint16_t>(bytes);
  header.to = to;
  wire::encode(header, packet.data());
  return packet;
}
inline std::span<std::byte> frame_of(std::vector<std::byte>& packet) {
  return std::span(packet).subspan(wire::kHeaderBytes);
}

}  // namespace pullman::engine
