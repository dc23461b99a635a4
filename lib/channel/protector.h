// What a channel needs to protect packets: it seals each packet before its port takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/sequence.h"
#include "wire/protection.h"

namespace pullman::channel {

// Whose packet it is. Together with what its header says, this names the key and the nonce.
struct Origin {
  static constexpr std::uint32_t kNoPeer = ~std::uint32_t{0};

  std::uint32_t peer = kNoPeer;  // index of the peer that it is for
  std::uint8_t rail = 0;
  PacketNumber number = 0;               // not looked at where the packet is initial
  std::optional<std::uint8_t> key = {};  // which of the job's keys; nothing: the peer's
};

class Protector {
 public:
  virtual ~Protector() = default;

  // Writes the datagram for a packet, header first, that lies in two parts, the second of which may
  // be empty: `out` has room for both and for wire::trailer_bytes(). Returns the number of bytes.
  // A packet is sealed again under its number only if it has not left.
  virtual std::size_t seal(const Origin& origin, std::span<const std::byte> head,
                           std::span<const std::byte> payload, std::byte* out) = 0;
  // Memory for what is sealed in one call, with room for the longest datagram. All channels of an
  // engine use it, since what was just used is in the cache; nothing stays there between calls.
  virtual std::span<std::byte> room() = 0;
};

}  // namespace pullman::channel
