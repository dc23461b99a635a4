// The rail to a peer on the same host, through memory: what packets carry goes through a ring, as
// records without headers. Memory loses nothing and keeps the order, so a packet has no number, no
// timer and no ACK here: the peer has it once it has read the record.
//
// If the peer can read this process's memory, a long chunk stays where it is, and its record says
// where (a reference). It is copied once then, by the peer.
//
// Packets stay as they are until their records were read. If the rail ends before, those that the
// peer may not have read leave by a NIC, with the same message ids; what it had read all the same,
// it drops.
//
// Knows neither peers nor other rails. It owns the pair, and the packets until they are taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "channel/packet.h"
#include "shm/pair.h"
#include "wire/frame.h"
#include "wire/memory.h"

namespace pullman::engine {

class MemoryRail {
 public:
  explicit MemoryRail(shm::Pair pair) : pair_(std::move(pair)) {}
  ~MemoryRail();
  MemoryRail(const MemoryRail&) = delete;
  MemoryRail& operator=(const MemoryRail&) = delete;

  // --- packets that leave

  // Small messages are packed into packets of this length at most, header included.
  static constexpr std::size_t kMaxSmallPacket = 2304;
  // The longest packet that can be posted, header included: with a payload of its own, or without.
  std::size_t max_packet() { return pair_.is_read_there() ? kMaxReferring : max_copied(); }
  std::size_t max_copied() const { return pair_.max_record() + wire::kHeaderBytes; }
  // Returns whether a packet can be posted: none waits for room in the ring.
  bool has_room() const { return waiting_ == nullptr; }
  // Puts what the packet carries into the ring; if there is no room the packet waits, and flush()
  // tries again. Needs has_room().
  void post(channel::Packet& packet);
  // Returns whether a packet that waited has left.
  bool flush() { return waiting_ != nullptr && write_waiting(); }
  // Returns the next packet that the peer has read, in the order of posting; null if there is none.
  channel::Packet* take_read();
  // Returns the next of the packets that the peer may not have read; null if there is none. For
  // when the rail is left.
  channel::Packet* take_unread();
  // Returns the number of packets that were posted and not taken back.
  std::size_t in_flight() const { return in_flight_.size() + (waiting_ != nullptr ? 1 : 0); }
  // Returns whether the peer waits for nothing that was posted, as far as that is known without
  // looking: all was taken back, or the peer has written since, so it has read what it answers.
  bool is_answered() const { return in_flight() == 0 || (answered_ && has_room()); }

  // --- records that have come

  // Where the bytes of a chunk are that was not copied into the ring.
  struct Reference {
    std::uint64_t address = 0;         // in the peer's process
    std::uint64_t length = 0;          // of the bytes
    std::span<const std::byte> frame;  // the CHUNK, without its bytes and their length
  };
  // Returns the frames of the next record; nothing if there is none. If is_reference(), the record
  // is one, and reference() reads it. Valid until pop().
  std::optional<std::span<const std::byte>> front() { return pair_.in().front(); }
  bool is_reference() const { return pair_.in().is_marked(); }
  // Returns nothing if the record is too short.
  static std::optional<Reference> reference(std::span<const std::byte> record);
  // Copies the bytes from there. Returns false if that is not possible, or if the peer has ended
  // the rail: from then on its program may use the memory for something else.
  bool read(std::uint64_t address, std::span<std::byte> into) const {
    return !pair_.has_ended() && pair_.read(address, into) && !pair_.has_ended();
  }
  void pop() {
    pair_.in().pop();
    news_ = answered_ = true;
  }

  // --- sleep, and the end

  // Returns true if the peer sleeps, and is to be woken for what was written or read since this was
  // asked last.
  bool must_wake();
  enum class MayBlock : std::uint8_t {
    kNo,       // there is a packet to take back, a record to read, or the rail has ended
    kBriefly,  // for shm::Pair::kSettle, then this end must look again
    kYes,
  };
  // Says that this end is about to block, until found_news(). Records to read, and the end of the
  // rail, do not keep it from blocking if `record_stays`.
  MayBlock prepare_to_block(bool record_stays = false);
  void found_news() {
    if (std::exchange(sleeps_, false)) [[unlikely]]
      pair_.clear_sleeping();
  }
  // Returns true if nothing more will come: the peer has ended the rail, and all it had sent was
  // read; or it has written what makes no sense.
  bool is_over();
  void end() { pair_.end(); }
  shm::Pair& pair() { return pair_; }
  const shm::Pair& pair() const { return pair_; }

 private:
  // The peer does nothing else while it copies a chunk, 100 us for each MiB; with chunks of one MiB
  // a message of four takes 5 % longer. One that is shorter than kLeastReferred is cheaper to copy
  // twice than to have the kernel find its pages.
  static constexpr std::size_t kMaxReferring =
      wire::kMaxReferenceBytes + wire::kHeaderBytes + wire::kChunkBytes;
  static constexpr std::size_t kLeastReferred = 2048;

  bool refers(const channel::Packet& packet) {
    return packet.payload_bytes >= kLeastReferred && pair_.is_read_there();
  }
  bool write(channel::Packet& packet);
  bool write_waiting();

  shm::Pair pair_;
  channel::PacketQueue in_flight_;      // in the ring; their numbers are where their records end
  channel::Packet* waiting_ = nullptr;  // has no room in the ring
  bool news_ = false;                   // something was written or read since must_wake()
  bool answered_ = false;               // something was read since a packet was posted
  bool sleeps_ = false;                 // the peer was told that this end is about to block
};

}  // namespace pullman::engine
