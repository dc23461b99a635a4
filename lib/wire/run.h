// A run: packets that follow each other in one stream, as a sender cuts a long message: number by
// number, one CHUNK each or bulk packets, byte by byte. All but the first are told by comparing
// bytes, not decoded.
//
// Knows which bytes must repeat, count on, or may be anything (wire.md 2.1, 2.11, 4.1). Does not
// know windows or messages: whether the first packet is good, and what may follow, its user knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/frame.h"
#include "wire/header.h"

namespace pullman::wire {

class ChunkRun {
 public:
  // Begins behind a datagram that was accepted, of that header and with those frames. False if no
  // run begins there: it is neither a bulk packet nor a sequenced one with an ack, no checksum and
  // one CHUNK alone.
  bool begin(std::span<const std::byte> datagram, const PacketHeader& header,
             const FrameList& frames) {
    if (!frames.is_alone() || frames.front().type != FrameType::kChunk) return false;
    const std::size_t bytes = frames.front().data.size();
    if (header.type == PacketType::kBulk) {
      begin_bulk(datagram.data(), bytes);
    } else if (header.type == PacketType::kSequenced &&
               (header.flags & ~kFlagAckSoon) == kFlagAck) {
      begin_full(datagram.data(), bytes);
    } else {
      return false;
    }
    last_ = header;
    return true;
  }

  // The packet the run ends with so far. Of its header, what all of the run have in common, its
  // number and its floor distance are right; and it wants its ACK soon if any of them does.
  const PacketHeader& last() const { return last_; }

  // The data of a datagram if the run goes on with it, as good a packet as the one before, and it
  // brings `most` bytes at most; else nothing, and the run is what it was. What may differ from the
  // packet before is the hold time, the wish for an ACK, and the floor if it has not fallen.
  std::span<const std::byte> next(std::span<const std::byte> datagram, std::uint64_t most) {
    return last_.type == PacketType::kBulk ? next_bulk(datagram, most) : next_full(datagram, most);
  }

 private:
  static constexpr std::size_t kHeadBytes = kHeaderBytes + kChunkBytes;
  static constexpr std::size_t kWords = kHeadBytes / 8;

  void begin_full(const std::byte* in, std::size_t data_bytes);
  void begin_bulk(const std::byte* in, std::size_t data_bytes);
  std::span<const std::byte> next_full(std::span<const std::byte> datagram, std::uint64_t most);
  std::span<const std::byte> next_bulk(std::span<const std::byte> datagram, std::uint64_t most);
  void expect_number();
  void expect_behind(std::size_t bytes);
  bool floor_may_be(std::uint16_t floor_distance) const;
  void take(const std::byte* header, std::uint16_t floor_distance);

  PacketHeader last_;
  // Of the next packet; 0: lengths, and what may be anything. Of a bulk packet the first three, and
  // what is read where its offset is.
  std::array<std::uint64_t, kWords> expected_;
  std::uint64_t bulk_offset_ = 0;
};

}  // namespace pullman::wire
