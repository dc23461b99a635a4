// A datagram as an observer without keys sees it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "wire/protection.h"

namespace pullman::sim {

struct PacketView {
  std::span<const std::byte> packet;  // without what protects it
  wire::Protection protection = wire::Protection::kOff;
  wire::Verdict verdict = wire::Verdict::kTooShort;
  wire::PacketHeader header;  // if it was accepted

  explicit PacketView(std::span<const std::byte> datagram) : packet(datagram) {
    if (datagram.size() < wire::kBulkHeaderBytes) return;
    const auto flags = static_cast<std::uint8_t>(datagram[1]);
    protection = static_cast<wire::Protection>(flags & wire::kProtectionMask);
    if (protection != wire::Protection::kOff) packet = wire::packet_in(datagram);
    verdict = wire::decode(packet, header, protection);
  }
  bool accepted() const { return verdict == wire::Verdict::kAccepted; }
  bool readable() const { return accepted() && protection != wire::Protection::kEncrypt; }
};

}  // namespace pullman::sim
