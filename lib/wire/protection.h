// What a protected packet has behind it in its datagram, and the names of the keys it is sealed
// with (wire.md 12).
//
// Knows bytes. Does not know keys or ciphers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sequence.h"
#include "wire/header.h"

namespace pullman::wire {

inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kSaltBytes = 16;
// What stands before the tag of a packet that is sealed with the key of its sender, not with that
// of a connection: the sender's salt and the packet's count.
inline constexpr std::size_t kInitialBytes = kSaltBytes + 8;

// Packets of these types come before there is a connection, or to one that is not known.
constexpr bool is_initial(PacketType type) {
  return type == PacketType::kHello || type == PacketType::kWelcome || type == PacketType::kCheck;
}
// Returns the type of a packet that begins with this byte.
constexpr PacketType type_of(std::byte first) {
  return static_cast<PacketType>(static_cast<unsigned>(first) & 0x0F);
}
// Returns the bytes behind a protected packet that begins with this byte.
constexpr std::size_t trailer_bytes(std::byte first) {
  return kTagBytes + (is_initial(type_of(first)) ? kInitialBytes : 0);
}
// Returns the packet in the datagram of a protected packet; nothing if it is too short.
constexpr std::span<const std::byte> packet_in(std::span<const std::byte> datagram) {
  const std::size_t trailer = datagram.empty() ? 0 : trailer_bytes(datagram.front());
  return datagram.size() <= trailer ? std::span<const std::byte>{}
                                    : datagram.first(datagram.size() - trailer);
}

// What HELLO or WELCOME tells of one end of a connection, and no two connections have in common.
struct End {
  std::uint64_t epoch = 0;
  ConnectionId id;  // that its packets carry
  PacketNumber first_number = 0;
  bool operator==(const End&) const = default;
};

// Names the key of some packets of one connection: those in one direction, of one rail, of which
// 2^kPhaseBits of each series, sequenced and control packets, may be sealed with it.
struct KeyName {
  static constexpr unsigned kPhaseBits = 22;

  Protection protection = Protection::kOff;
  std::uint8_t rail = 0;
  std::uint64_t phase = 0;
};
constexpr std::uint64_t phase_of(PacketNumber number) {
  return number >> KeyName::kPhaseBits;
}

// A packet's number, with what tells the two series apart, is its nonce (wire.md 12.4).
using Nonce = std::array<std::byte, 12>;
Nonce nonce_of(bool control, std::uint64_t number);

inline constexpr std::size_t kConnectionInfoBytes = 16 + 1 + 2 * 24 + 1 + 8;
inline constexpr std::size_t kInitialInfoBytes = 16 + 1 + kSaltBytes;
using ConnectionInfo = std::array<std::byte, kConnectionInfoBytes>;
using InitialInfo = std::array<std::byte, kInitialInfoBytes>;

// Writes a number of 8 bytes and returns the place behind it; reads one.
std::byte* put_number(std::byte* out, std::uint64_t number);
std::uint64_t take_number(const std::byte* in);

// Return what the keys are derived by: HKDF's info (wire.md 12.3).
ConnectionInfo info_of(const End& from, const End& to, const KeyName& name);
InitialInfo info_of(std::span<const std::byte, kSaltBytes> salt, Protection protection);

}  // namespace pullman::wire
