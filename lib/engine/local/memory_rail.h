// The rail to a peer on the same host, through memory: what packets carry goes through a ring, as
// records without headers. Memory loses nothing and keeps the order, so a packet has no number, no
// timer and no ACK here: the peer has it once it has read the record.
//
// Packets stay as they are until then. If the rail ends before, those that the peer may not have
// read leave by a NIC, with the same message ids; what it had read all the same, it drops.
//
// Knows neither peers nor other rails. It owns the pair, and the packets until they are taken back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "channel/packet.h"
#include "shm/pair.h"

namespace pullman::engine {

class MemoryRail {
 public:
  explicit MemoryRail(shm::Pair pair) : pair_(std::move(pair)) {}
  ~MemoryRail();
  MemoryRail(const MemoryRail&) = delete;
  MemoryRail& operator=(const MemoryRail&) = delete;

  // The longest packet that can be sent, header included.
  std::size_t max_packet() const { return pair_.max_record() + wire::kHeaderBytes; }
  // Puts what the packet carries into the ring. Returns false if there is no room now; then the
  // packet stays the caller's.
  bool send(channel::Packet& packet);
  // Returns the next packet that the peer has read, in the order of sending; null if there is none.
  channel::Packet* take_read();
  // Returns the next of the packets that the peer may not have read; null if there is none. For
  // when the rail is left.
  channel::Packet* take_unread();
  std::size_t in_flight() const { return in_flight_.size(); }

  // Returns the frames of the next record that the peer has sent; nothing if there is none. Valid
  // until pop().
  std::optional<std::span<const std::byte>> front() { return pair_.in().front(); }
  void pop() { pair_.in().pop(); }

  // Returns true if the peer sleeps, and is to be woken for what was sent since it began to.
  bool must_wake() { return pair_.must_wake(); }
  // Returns true if this end must not block: there is something to read, or the rail has ended.
  bool prepare_to_block() { return pair_.set_sleeping(true); }
  void woke_up() { pair_.set_sleeping(false); }

  // Returns true if nothing more will come: the peer has ended the rail, and all it had sent was
  // read; or it has written what makes no sense.
  bool is_over();
  void end() { pair_.end(); }
  shm::Pair& pair() { return pair_; }

 private:
  shm::Pair pair_;
  channel::PacketQueue in_flight_;  // their numbers are where their records end
};

}  // namespace pullman::engine
