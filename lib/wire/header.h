// The packet header: the first 32 bytes of every datagram (wire.md 2), 18 of a bulk packet.
//
// Knows bytes and what makes a header well-formed. Does not know connections, windows or time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/verdict.h"

namespace pullman::wire {

inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kBulkHeaderBytes = 18;  // the first bytes of a header (wire.md 2.11)
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kWindow =
    4096;  // packet numbers between floor and highest (wire.md 3.2)
inline constexpr std::uint16_t kMaxCredit = 4095;  // wire.md 2.6

// wire.md 2.2
enum class PacketType : std::uint8_t {
  kSequenced = 1,  // frames under a packet number; acknowledged
  kControl = 2,    // an ACK alone; its number counts control packets; never acknowledged
  kHello = 3,      // opens a connection; sequenced; addressed to connection 0
  kWelcome = 4,    // answers a HELLO; sequenced
  kBulk = 5,       // sequenced, too: one chunk of a granted message, with a shorter header
  kCheck = 6,      // connectivity check: no number, never acknowledged (check.h)
};

// Identifies the connection to the receiver of a packet, which chose it: an index for the lookup,
// random bits for the proof (wire.md 2.4). {0, 0} names no connection: only HELLO and the
// unknown-peer reply of a CHECK use it.
struct ConnectionId {
  std::uint32_t index = 0;
  std::uint32_t proof = 0;
  bool operator==(const ConnectionId&) const = default;
};

// Flags, wire.md 2.3
inline constexpr std::uint8_t kFlagAck = 0x01;       // cumulative, hold and credit are valid
inline constexpr std::uint8_t kFlagChecksum = 0x02;  // the checksum field is valid
// The sender needs the ACK soon (as in RFC 7053).
inline constexpr std::uint8_t kFlagAckSoon = 0x20;
inline constexpr std::uint8_t kFlagsKnown = kFlagAck | kFlagChecksum | kFlagAckSoon;
// The bits between the flags: the rail to which the packet numbers belong (wire.md 2.10).
inline constexpr unsigned kRailShift = 2;
inline constexpr std::uint8_t kRailMask = 0x07;
inline constexpr std::size_t kMaxRails = 8;

// How the packets of an engine are protected, wire.md 12: the highest two bits of the flags. They
// are sealed with what the packet itself says, so nobody can change them.
enum class Protection : std::uint8_t {
  kOff = 0,              // anybody may have sent it
  kAuthenticate = 0x40,  // its sender has the job's key
  kEncrypt = 0x80,       // the same, and only who has the key can read it
};
inline constexpr std::uint8_t kProtectionMask = 0xC0;

// The hold time (ACK delay) is in units of 128 ns (wire.md 2.8). kHoldUnknown: no RTT sample.
inline constexpr std::uint16_t kHoldUnknown = 0xFFFF;
inline constexpr std::uint64_t kHoldUnitNs = 128;

// How long the sender of an ACK had not polled before it received the highest-numbered packet that
// it acknowledges. That packet may have waited for so long in the NIC, not in the network (wire.md
// 2.13). 0 means less than 4.096 us, each further value less than twice as long, the last one any.
enum class PollGap : std::uint8_t { kNone = 0, kLongest = 15 };
constexpr PollGap poll_gap_of(std::uint64_t ns) {
  return static_cast<PollGap>(std::min(static_cast<int>(std::bit_width(ns >> 12)), 15));
}
// Returns the time that the gap is shorter than; 0 for the shortest ones.
constexpr std::uint64_t nanoseconds(PollGap gap) {
  return gap == PollGap::kNone ? 0 : std::uint64_t{1} << (12 + static_cast<unsigned>(gap));
}

struct PacketHeader {
  PacketType type = PacketType::kSequenced;
  std::uint8_t flags = 0;
  std::uint8_t rail = 0;             // < kMaxRails
  std::uint16_t length = 0;          // of the whole packet in bytes, header included
  ConnectionId to;                   // the receiver's connection
  std::uint32_t number = 0;          // low 32 bits of the packet number
  std::uint16_t floor_distance = 0;  // number - lowest number still in flight: < kWindow
  std::uint16_t credit = 0;  // packets the receiver can hold beyond `cumulative`: <= kMaxCredit
  PollGap poll_gap = PollGap::kNone;  // before the highest-numbered packet was received
  std::uint32_t cumulative = 0;       // all packets below are received or settled
  std::uint16_t hold = kHoldUnknown;  // time since the highest-numbered packet arrived
  std::uint16_t late = 0;      // packets that brought nothing new, or came settled, modulo 2^16
  std::uint32_t checksum = 0;  // CRC-32 over the packet with this field 0

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

constexpr std::size_t header_bytes(PacketType type) {
  return type == PacketType::kBulk ? kBulkHeaderBytes : kHeaderBytes;
}

// Writes header_bytes(header.type) bytes.
void encode(const PacketHeader& header, std::byte* out);

// Writes the headers of `count` packets, `stride` bytes apart. They have consecutive numbers and
// the same floor, and are otherwise equal to `first`.
void encode_run(const PacketHeader& first, std::byte* out, std::size_t stride, std::size_t count);
// Change the length in an encoded header, or add a flag.
void set_length(std::byte* header, std::size_t length);
void set_flag(std::byte* header, std::uint8_t flag);

// Decodes and validates the header of one whole packet, which must have this protection, or none.
// On kAccepted `out` is filled and every field is in range; otherwise `out` is unspecified.
// Verifies neither checksum nor tag.
Verdict decode(std::span<const std::byte> packet, PacketHeader& out);
Verdict decode(std::span<const std::byte> packet, PacketHeader& out, Protection protection);

// Fills in the checksum of an encoded packet that lies in two segments (the second may be empty),
// and sets its flag. The first segment contains at least the header.
void seal(std::span<std::byte> head, std::span<const std::byte> payload);

// Returns true if the checksum of a decoded datagram is right. Needs kFlagChecksum to be set.
bool checksum_holds(std::span<const std::byte> datagram, const PacketHeader& header);

}  // namespace pullman::wire
