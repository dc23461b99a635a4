// A run: chunks of one message that lie side by side and leave together under consecutive numbers.
//
// What N packets would each have of their own, it has once: one guest of the hotel, one entry of
// the pool, one time of sending. Chunks that are acked are taken off it. One that needs attention
// of its own because it was lost is split off as a packet like any other; memory for that was set
// aside when the run was made, so it never fails. Does not wait in a channel: what the port did not
// take at once is split off, too.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "channel/packet.h"

namespace pullman::channel {

// As a packet: `number`, `payload` and `payload_bytes` are the first chunk's; `bytes` holds the
// heads of all of them, stride() bytes apart.
struct Run : Packet {
  // Of a bulk packet: two heads to a line of the cache.
  static constexpr std::size_t kBulkBytes = 32;

  // A burst of kernel UDP is 64 packets at most (UDP_MAX_SEGMENTS).
  static constexpr std::uint32_t kMost = 64;

  std::uint32_t count = 0;       // chunks it was made of
  std::uint32_t last_bytes = 0;  // payload of the last one; of the others `payload_bytes`
  std::uint32_t overlap = 0;     // of the last one's, that the chunk before it has, too
  std::uint64_t left = 0;        // bit i: chunk i was neither acked nor split off

  PacketNumber end() const { return number + count; }
  bool has(std::uint32_t at) const { return (left >> at & 1) != 0; }
  // Of what is left, the chunks with numbers below `end`.
  std::uint64_t left_below(PacketNumber end) const {
    if (end <= number) return 0;
    return end - number >= kMost ? left : left & ((std::uint64_t{1} << (end - number)) - 1);
  }

  std::size_t stride() const { return is_bulk ? kBulkBytes : kSmallBytes; }
  std::byte* head_at(std::uint32_t at) const { return bytes + at * stride(); }
  std::span<std::byte> head_of(std::uint32_t at) const { return {head_at(at), used}; }
  // The longest packet of those chunks, of which there is one at least.
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
