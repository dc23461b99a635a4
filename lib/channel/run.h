// A run: adjacent chunks of one message that leave together under consecutive packet numbers.
//
// A run has once what each of its packets would need: a guest of the hotel, an entry of the pool, a
// time of sending. Chunks that are acknowledged are removed from it. A chunk that is lost is split
// off as a single packet; memory for that is set aside when the run is taken, so it never fails. A
// run does not wait in a channel: chunks that the port does not take at once are split off, too.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "channel/packet.h"

namespace pullman::channel {

// The base's `number`, `payload` and `payload_bytes` are those of the first chunk; `bytes` contains
// the heads of all chunks, stride() bytes apart.
struct Run : Packet {
  // The stride of bulk packets: two heads share a cache line.
  static constexpr std::size_t kBulkBytes = 32;

  // A burst of kernel UDP has at most 64 packets (UDP_MAX_SEGMENTS).
  static constexpr std::uint32_t kMost = 64;

  std::uint32_t count = 0;       // chunks it was made of
  std::uint32_t last_bytes = 0;  // payload of the last chunk; the others have `payload_bytes`
  std::uint32_t overlap = 0;     // payload bytes of the last chunk that the one before has, too
  std::uint64_t left = 0;        // bit i: chunk i was neither acked nor split off

  PacketNumber end() const { return number + count; }
  bool has(std::uint32_t at) const { return (left >> at & 1) != 0; }
  // Returns the chunks left whose numbers are below `end`.
  std::uint64_t left_below(PacketNumber end) const {
    if (end <= number) return 0;
    return end - number >= kMost ? left : left & ((std::uint64_t{1} << (end - number)) - 1);
  }

  std::size_t stride() const { return is_bulk ? kBulkBytes : kSmallBytes; }
  std::byte* head_at(std::uint32_t at) const { return bytes + at * stride(); }
  std::span<std::byte> head_of(std::uint32_t at) const { return {head_at(at), used}; }
  // Returns the length of all its packets together.
  std::size_t total_bytes() const { return (count - 1) * size() + used + last_bytes; }
  // Returns the length of the longest packet of those chunks, of which there is at least one.
  std::size_t longest_of(std::uint64_t which) const {
    const bool last_only = which >> (count - 1) == 1 && std::has_single_bit(which);
    return last_only ? used + last_bytes : size();
  }
  std::span<const std::byte> payload_of(std::uint32_t at) const {
    const std::byte* begin = payload + std::size_t{at} * payload_bytes;
    if (at + 1 < count) return {begin, payload_bytes};
    return {begin - overlap, last_bytes};
  }
};

inline Run* as_run(Packet* packet) {
  return packet != nullptr && packet->is_run ? static_cast<Run*>(packet) : nullptr;
}

}  // namespace pullman::channel
