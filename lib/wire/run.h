// A run: packets that follow each other in one stream, as a sender cuts a long message: number by
// number, one CHUNK each, byte by byte. All but the first are told by comparing bytes, not decoded.
//
// Knows which bytes must repeat, count on, or may be anything (wire.md 2.1, 4.1). Does not know
// windows or messages: whether the first packet is good, and what may follow, its user knows.
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
  // Begins behind a datagram that was accepted. False if no run begins there: it is not a sequenced
  // packet with an ack, no checksum and one CHUNK alone.
  bool begin(std::span<const std::byte> datagram) {
    return datagram.size() > kHeadBytes && datagram[kHeaderBytes] == kChunkType && read(datagram);
  }

  // The packet the run ends with so far. Of its header, what all of the run have in common, its
  // number and its floor distance are right.
  const PacketHeader& last() const { return last_; }
  // The CHUNK it began with.
  const Frame& first_chunk() const { return chunk_; }

  // The data of a datagram if the run goes on with it, as good a packet as the one before, and it
  // brings `most` bytes at most; else nothing, and the run is what it was. What may differ from the
  // packet before is the hold time, and the floor if it has not fallen.
  std::span<const std::byte> next(std::span<const std::byte> datagram, std::uint64_t most);

 private:
  static constexpr std::size_t kHeadBytes = kHeaderBytes + kChunkBytes;
  static constexpr std::size_t kWords = kHeadBytes / 8;
  static constexpr std::byte kChunkType{static_cast<std::uint8_t>(FrameType::kChunk)};

  bool read(std::span<const std::byte> datagram);
  void expect_behind(std::size_t bytes);

  PacketHeader last_;
  Frame chunk_;
  std::array<std::uint64_t, kWords>
      expected_{};  // of the next packet; 0: lengths, and what may be anything
};

}  // namespace pullman::wire
