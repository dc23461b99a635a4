#include "wire/run.h"

#include <limits>

#include "wire/bytes.h"

namespace pullman::wire {
namespace {

// Masks for the 64-bit words of a header and the head of a CHUNK, which are adjacent: the bits that
// are compared with the packet before. Both lengths are checked against the datagram's instead.
constexpr std::size_t kNumberWord = 1;
constexpr std::size_t kOffsetWord = 7;
constexpr std::uint64_t kAckSoon = std::uint64_t{kFlagAckSoon} << 48;
constexpr std::array<std::uint64_t, 8> kCompared = {
    ~kAckSoon,              // version and type, flags, length, connection index
    ~std::uint64_t{0},      // proof, number
    0x0000'FFFF'FFFF'FFFF,  // floor distance, credit, cumulative ack
    0x0000'FFFF'FFFF'FFFF,  // hold time, late count, checksum
    ~std::uint64_t{0},      // frame type, 0, length, message id
    ~std::uint64_t{0},      // tag
    ~std::uint64_t{0},      // total
    ~std::uint64_t{0},      // offset
};
constexpr std::size_t kFloorWord = 2;
constexpr unsigned kLengthShift = 32;  // of both lengths, in words 0 and 4
constexpr std::uint64_t kLength = std::uint64_t{0xFFFF} << kLengthShift;
constexpr std::uint64_t kNumber = 0xFFFF'FFFF;  // the half of the word after the proof
// A bulk packet has the first two words, too. Its third contains floor distance and message id; the
// last 8 bytes that are read contain the lower half of the id, and the offset.
constexpr std::uint64_t kIdOfBulk = 0x0000'FFFF'FFFF'0000;
constexpr std::size_t kOffsetOfBulkAt = 20;
constexpr std::size_t kMaxBytes = std::numeric_limits<std::uint16_t>::max();

}  // namespace

// Expects the next packet's number.
inline void ChunkRun::expect_number() {
  std::uint64_t& word = expected_[kNumberWord];
  word = (word & ~kNumber) | ((word + 1) & kNumber);
}

// Expects the next packet's number, and its offset after this many bytes of data.
inline void ChunkRun::expect_behind(std::size_t bytes) {
  expect_number();
  expected_[kOffsetWord] += bytes;
}

void ChunkRun::begin_full(const std::byte* in, std::size_t data_bytes) {
  static_assert(kWords == kCompared.size());
  for (std::size_t w = 0; w < kWords; ++w) expected_[w] = load64(in + 8 * w) & kCompared[w];
  expected_[0] &= ~kLength;
  expected_[4] &= ~kLength;
  expect_behind(data_bytes);
}

void ChunkRun::begin_bulk(const std::byte* in, std::size_t data_bytes) {
  expected_[0] = load64(in) & kCompared[0] & ~kLength;
  expected_[kNumberWord] = load64(in + 8 * kNumberWord);
  expect_number();
  expected_[kFloorWord] = load64(in + 8 * kFloorWord) & kIdOfBulk;
  bulk_offset_ = load64(in + kOffsetOfBulkAt) + data_bytes;
}

// Makes the packet the run's last one.
inline void ChunkRun::note_header(std::span<const std::byte> packet) {
  last_.floor_distance = load16(packet.data() + 8 * kFloorWord);
  ++last_.number;
  last_.flags |= load8(packet.data() + 1) & kFlagAckSoon;
}
inline void ChunkRun::note_full(std::span<const std::byte> packet, std::size_t data_bytes) {
  note_header(packet);
  expect_behind(data_bytes);
}
inline void ChunkRun::note_bulk(std::span<const std::byte> packet, std::size_t data_bytes) {
  note_header(packet);
  expect_number();
  bulk_offset_ += data_bytes;
}

inline bool ChunkRun::floor_may_be(std::uint16_t floor_distance) const {
  return floor_distance < kWindow && floor_distance <= last_.floor_distance + 1;
}

inline std::span<const std::byte> ChunkRun::next_full(std::span<const std::byte> packet,
                                                      std::uint64_t most) const {
  if (packet.size() <= kHeadBytes || packet.size() > kMaxBytes) return {};
  const std::byte* in = packet.data();
  const auto data = packet.subspan(kHeadBytes);
  const auto differs = [&](std::size_t w, std::size_t length) {
    return (load64(in + 8 * w) & kCompared[w]) ^ expected_[w] ^ (length << kLengthShift);
  };
  const std::uint16_t floor_distance = load16(in + 8 * kFloorWord);
  const bool same = (differs(0, packet.size()) | differs(1, 0) | differs(2, 0) | differs(3, 0) |
                     differs(4, data.size()) | differs(5, 0) | differs(6, 0) | differs(7, 0)) == 0;
  return same && data.size() <= most && floor_may_be(floor_distance) ? data
                                                                     : std::span<const std::byte>{};
}

inline std::span<const std::byte> ChunkRun::next_bulk(std::span<const std::byte> packet,
                                                      std::uint64_t most) const {
  if (packet.size() <= kBulkHeadBytes || packet.size() > kMaxBytes) return {};
  const std::byte* in = packet.data();
  const auto data = packet.subspan(kBulkHeadBytes);
  const std::uint64_t differs =
      ((load64(in) & kCompared[0]) ^ expected_[0] ^ (packet.size() << kLengthShift)) |
      (load64(in + 8 * kNumberWord) ^ expected_[kNumberWord]) |
      ((load64(in + 8 * kFloorWord) & kIdOfBulk) ^ expected_[kFloorWord]) |
      (load64(in + kOffsetOfBulkAt) ^ bulk_offset_);
  const std::uint16_t floor_distance = load16(in + 8 * kFloorWord);
  return differs == 0 && data.size() <= most && floor_may_be(floor_distance)
             ? data
             : std::span<const std::byte>{};
}

std::span<const std::byte> ChunkRun::next(std::span<const std::byte> packet, std::uint64_t most) {
  if (last_.type == PacketType::kBulk) {
    const auto data = next_bulk(packet, most);
    if (!data.empty()) note_bulk(packet, data.size());
    return data;
  }
  const auto data = next_full(packet, most);
  if (!data.empty()) note_full(packet, data.size());
  return data;
}

std::span<const std::byte> ChunkRun::data_of_next(std::span<const std::byte> packet,
                                                  std::uint64_t most) const {
  return last_.type == PacketType::kBulk ? next_bulk(packet, most) : next_full(packet, most);
}

void ChunkRun::take(std::span<const std::byte> packet, std::size_t data_bytes) {
  last_.type == PacketType::kBulk ? note_bulk(packet, data_bytes) : note_full(packet, data_bytes);
}

}  // namespace pullman::wire
