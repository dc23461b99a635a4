// Sets up the memory that this engine shares with peers on its host, and leaves it (wire.md 11).
//
// When the first message for such a peer is to leave, or a check begins, it is offered a segment.
// If it can join that, what both send goes through memory from then on; if not, or if the memory
// ends, through the NICs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/keyed_random.h"
#include "engine/peer/memory_peers.h"
#include "engine/peer/peer_queries.h"
#include "engine/send/ready_peers.h"
#include "shm/pairs.h"
#include "wire/frame.h"

namespace pullman::engine {

class MemorySetup {
 public:
  // `pairs` makes the segments; null: memory is not shared. `host` is that of this engine.
  MemorySetup(shm::Pairs* pairs, std::uint64_t epoch, std::uint64_t host, KeyedRandom& random,
              MemoryPeers& peers, ReadyPeers& ready)
      : pairs_(pairs), epoch_(epoch), host_(host), random_(random), peers_(peers), ready_(ready) {}

  // A peer has introduced itself, with the host that it says it is on.
  void introduce(Peer& peer, std::uint64_t host) const {
    peer.may_share = pairs_ != nullptr && host_ != 0 && host == host_ && peer.epoch != epoch_;
  }
  // Offers memory to a peer that may share it, if it was not offered any.
  void offer(Peer& peer);
  // Writes the MEMORY frame that is due, at most wire::kMaxMemoryBytes, and returns its length.
  static std::size_t write_frame(Peer& peer, std::byte* out);
  // Handles the peer's offer, or its answer that it cannot join. Returns false if it is malformed.
  bool handle_frame(Peer& peer, const wire::Frame& frame);
  // Begins to use the memory once the peer has joined what it was offered.
  void activate_if_joined(Peer& peer);
  // The memory ends: what the peer may not have read leaves by a NIC.
  void leave(Peer& peer, const char* why);
  // Wakes a peer that sleeps, by a NIC; if none can be used now, it is to be called again.
  void wake(Peer& peer);

 private:
  void decline(Peer& peer);
  void join(Peer& peer, const wire::MemoryOffer& offer);
  void activate(Peer& peer, const char* how);
  void note_fault(const char* why);

  shm::Pairs* const pairs_;
  const std::uint64_t epoch_;
  const std::uint64_t host_;
  KeyedRandom& random_;
  MemoryPeers& peers_;
  ReadyPeers& ready_;
  bool told_ = false;  // the log has been told why memory is not shared
};

}  // namespace pullman::engine
