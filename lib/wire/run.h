// A run at the receiver: packets with consecutive numbers that contain consecutive chunks of a long
// message, either one CHUNK each or as bulk packets. All but the first are recognised by comparing
// bytes, without decoding.
//
// Knows which bytes must be equal, which must increase, and which may differ (wire.md 2.1, 2.11,
// 4.1). Does not know windows or messages: the caller has accepted the first packet, and limits
// what may follow.
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
  // Begins a run with a datagram that was accepted, and its header and frames. Returns false if no
  // run can begin there: the packet is neither a bulk packet nor a sequenced one with an ACK, no
  // checksum, and a single CHUNK.
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

  // Returns the header of the run's last packet so far. Valid are its number, its floor distance,
  // and the fields that all packets of the run share; kFlagAckSoon is set if any packet had it.
  const PacketHeader& last() const { return last_; }

  // Makes a packet that continues the run its last one, and returns its data; otherwise nothing.
  std::span<const std::byte> next(std::span<const std::byte> packet, std::uint64_t most);
  // The two steps of that. Returns the data of a packet if it continues the run and has at most
  // `most` bytes of data; otherwise nothing. Compared with the packet before, the hold time and
  // kFlagAckSoon may differ, and the floor may have risen.
  std::span<const std::byte> data_of_next(std::span<const std::byte> packet,
                                          std::uint64_t most) const;
  // Makes that packet the run's last one.
  void take(std::span<const std::byte> packet, std::size_t data_bytes);

 private:
  static constexpr std::size_t kHeadBytes = kHeaderBytes + kChunkBytes;
  static constexpr std::size_t kWords = kHeadBytes / 8;

  void begin_full(const std::byte* in, std::size_t data_bytes);
  void begin_bulk(const std::byte* in, std::size_t data_bytes);
  std::span<const std::byte> next_full(std::span<const std::byte> packet, std::uint64_t most) const;
  std::span<const std::byte> next_bulk(std::span<const std::byte> packet, std::uint64_t most) const;
  void note_header(std::span<const std::byte> packet);
  void note_full(std::span<const std::byte> packet, std::size_t data_bytes);
  void note_bulk(std::span<const std::byte> packet, std::size_t data_bytes);
  void expect_number();
  void expect_behind(std::size_t bytes);
  bool floor_may_be(std::uint16_t floor_distance) const;

  PacketHeader last_;
  // The words of the next packet, with 0 for lengths and for what may differ. For bulk packets the
  // first three are used, and bulk_offset_ for the 8 bytes that contain the offset.
  std::array<std::uint64_t, kWords> expected_;
  std::uint64_t bulk_offset_ = 0;
};

}  // namespace pullman::wire
