#include "wire/header.h"

#include <zlib.h>

#include <array>
#include <cstring>

#include "wire/bytes.h"
#include "wire/frame.h"

namespace pullman::wire {
namespace {

// Offsets, wire.md 2.1
constexpr std::size_t kTypeAt = 0;
constexpr std::size_t kFlagsAt = 1;
constexpr std::size_t kLengthAt = 2;
constexpr std::size_t kIndexAt = 4;
constexpr std::size_t kProofAt = 8;
constexpr std::size_t kNumberAt = 12;
constexpr std::size_t kFloorAt = 16;
constexpr std::size_t kCreditAt = 18;
constexpr std::size_t kCumulativeAt = 20;
constexpr std::size_t kHoldAt = 24;
constexpr std::size_t kLateAt = 26;
constexpr std::size_t kChecksumAt = 28;
constexpr unsigned kGapShift = 12;  // the poll gap is above the credit
static_assert(kMaxCredit >> kGapShift == 0);
static_assert(kChecksumAt + sizeof(std::uint32_t) == kHeaderBytes);
static_assert(kFloorAt + sizeof(std::uint16_t) == kBulkHeaderBytes);

std::uint32_t crc(std::uint32_t so_far, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32(so_far, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Returns the CRC-32 computed as if the checksum field were zero (wire.md 2.9).
std::uint32_t checksum_of(std::span<const std::byte> head, std::span<const std::byte> payload) {
  static constexpr std::byte kZero[sizeof(std::uint32_t)] = {};
  std::uint32_t sum = crc(0, head.first(kChecksumAt));
  sum = crc(sum, kZero);
  sum = crc(sum, head.subspan(kHeaderBytes));
  return payload.empty() ? sum : crc(sum, payload);
}

constexpr unsigned kFlagsShift = 16;  // in the first four bytes
static_assert((kFlagsKnown | kRailMask << kRailShift | kProtectionMask) == 0xFF);

constexpr std::uint32_t bits_of(Protection protection) {
  return static_cast<std::uint32_t>(protection) << kFlagsShift;
}

// Returns true if the first four bytes are of a sequenced packet of our version with the right
// protection, as nearly all packets are.
constexpr bool is_usual(std::uint32_t head, Protection protection) {
  constexpr std::uint32_t kFirst =
      kVersion << 4 | static_cast<std::uint32_t>(PacketType::kSequenced);
  return (head & (0xFF000000u | kProtectionMask << kFlagsShift)) ==
         (kFirst << 24 | bits_of(protection));
}

// Validates the first four bytes, except the length in them, of a packet that is at least as long
// as a bulk packet's header.
Verdict judge(std::uint32_t head, std::size_t size, Protection protection) {
  const std::uint32_t type = head >> 24 & 0x0F;
  const bool bulk = type == static_cast<std::uint32_t>(PacketType::kBulk);
  if (!bulk && size < kHeaderBytes) return Verdict::kTooShort;
  if (head >> 28 != kVersion) return Verdict::kBadVersion;
  if (type < 1 || type > 6) return Verdict::kBadType;
  const std::uint32_t flags = head >> kFlagsShift & 0xFF;
  if ((flags & kProtectionMask) == kProtectionMask) return Verdict::kBadReserved;
  if ((flags & kProtectionMask) != static_cast<std::uint32_t>(protection)) {
    return Verdict::kOtherProtection;
  }
  if (bulk && (flags & (kFlagAck | kFlagChecksum)) != 0) return Verdict::kBadReserved;
  if (!bulk && (flags & kFlagAckSoon) != 0)
    return Verdict::kBadReserved;  // sequenced packets do not get here: see is_usual()
  return Verdict::kAccepted;
}

// Does encode_run() for headers of kBytes bytes.
template <std::size_t kBytes>
void encode_alike(const PacketHeader& first, std::byte* out, std::size_t stride,
                  std::size_t count) {
  encode(first, out);
  std::array<std::byte, kBytes> alike;
  std::memcpy(alike.data(), out, kBytes);
  for (std::uint32_t i = 1; i < count; ++i) {
    std::byte* header = out + i * stride;
    std::memcpy(header, alike.data(), kBytes);
    store32(header + kNumberAt, first.number + i);
    store16(header + kFloorAt, static_cast<std::uint16_t>(first.floor_distance + i));
  }
}

}  // namespace

void encode(const PacketHeader& header, std::byte* out) {
  store8(out + kTypeAt, static_cast<std::uint8_t>(kVersion << 4 | static_cast<int>(header.type)));
  store8(out + kFlagsAt, static_cast<std::uint8_t>(header.flags | header.rail << kRailShift));
  store16(out + kLengthAt, header.length);
  store32(out + kIndexAt, header.to.index);
  store32(out + kProofAt, header.to.proof);
  store32(out + kNumberAt, header.number);
  store16(out + kFloorAt, header.floor_distance);
  if (header.type == PacketType::kBulk) return;
  store16(out + kCreditAt,
          static_cast<std::uint16_t>(header.credit | static_cast<unsigned>(header.poll_gap)
                                                         << kGapShift));
  store32(out + kCumulativeAt, header.cumulative);
  store16(out + kHoldAt, header.hold);
  store16(out + kLateAt, header.late);
  store32(out + kChecksumAt, header.checksum);
}

void encode_run(const PacketHeader& first, std::byte* out, std::size_t stride, std::size_t count) {
  if (first.type == PacketType::kBulk)
    return encode_alike<kBulkHeaderBytes>(first, out, stride, count);
  encode_alike<kHeaderBytes>(first, out, stride, count);
}

void set_length(std::byte* header, std::size_t length) {
  store16(header + kLengthAt, static_cast<std::uint16_t>(length));
}

void set_flag(std::byte* header, std::uint8_t flag) {
  store8(header + kFlagsAt, load8(header + kFlagsAt) | flag);
}

// Does decode(). It is compiled for packets that are not protected, too, since each passes here.
[[gnu::always_inline]] inline Verdict decode_protected(std::span<const std::byte> packet,
                                                       PacketHeader& out, Protection protection) {
  if (packet.size() <= kBulkHeadBytes) return Verdict::kTooShort;
  const std::byte* in = packet.data();
  const std::uint32_t head = load32(in);  // version and type, flags, length
  static_assert(kTypeAt == 0 && kFlagsAt == 1 && kLengthAt == 2);
  if (!is_usual(head, protection) || packet.size() < kHeaderBytes) [[unlikely]] {
    const Verdict verdict = judge(head, packet.size(), protection);
    if (verdict != Verdict::kAccepted) return verdict;
  }
  out.type = static_cast<PacketType>(head >> 24 & 0x0F);
  out.flags = head >> kFlagsShift & kFlagsKnown;
  out.rail = head >> (kFlagsShift + kRailShift) & kRailMask;
  out.length = static_cast<std::uint16_t>(head);
  if (out.length != packet.size()) return Verdict::kBadLength;
  out.to = {load32(in + kIndexAt), load32(in + kProofAt)};
  out.number = load32(in + kNumberAt);
  out.floor_distance = load16(in + kFloorAt);
  if (out.floor_distance >= kWindow) return Verdict::kOutsideWindow;
  if (out.type == PacketType::kBulk) return Verdict::kAccepted;
  const std::uint16_t credit = load16(in + kCreditAt);
  out.credit = credit & kMaxCredit;
  out.poll_gap = static_cast<PollGap>(credit >> kGapShift);
  out.cumulative = load32(in + kCumulativeAt);
  out.hold = load16(in + kHoldAt);
  out.late = load16(in + kLateAt);
  out.checksum = load32(in + kChecksumAt);
  return Verdict::kAccepted;
}

Verdict decode(std::span<const std::byte> packet, PacketHeader& out) {
  return decode_protected(packet, out, Protection::kOff);
}

Verdict decode(std::span<const std::byte> packet, PacketHeader& out, Protection protection) {
  return decode_protected(packet, out, protection);
}

void seal(std::span<std::byte> head, std::span<const std::byte> payload) {
  set_flag(head.data(), kFlagChecksum);
  store32(head.data() + kChecksumAt, checksum_of(head, payload));
}

bool checksum_holds(std::span<const std::byte> datagram, const PacketHeader& header) {
  return checksum_of(datagram, {}) == header.checksum;
}

}  // namespace pullman::wire
