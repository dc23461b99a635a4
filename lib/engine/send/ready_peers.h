// The peers that have something to send, in the order in which they are served.
#pragma once

#include <cstddef>

#include "engine/peer/peer.h"

namespace pullman::engine {

class ReadyPeers {
 public:
  void mark(Peer& peer) {
    if (peer.ready.is_linked()) return;
    peers_.push_back(peer);
    stalled_turns_ = 0;
  }
  void remove(Peer& peer) {
    if (peer.ready.is_linked()) peers_.erase(peers_.iterator_to(peer));
  }
  bool empty() const { return peers_.empty(); }
  std::size_t size() const { return peers_.size(); }
  Peer& take_first() {
    Peer& peer = peers_.front();
    peers_.pop_front();
    return peer;
  }
  // Puts the peers marked `refused` first in the next turn, in the order in which they have waited:
  // nothing of theirs left, since others had filled the ports or taken the packets.
  void put_refused_first();

  // A peer that has work but gets no packet from the pool is served each turn, but no turn is asked
  // for: packets come back with what arrives, with a timer, or when a peer ends.
  void begin_turn() { blocked_on_pool_ = 0; }
  void note_blocked_on_pool() { ++blocked_on_pool_; }
  void note_packets_returned() { blocked_on_pool_ = 0; }
  // Returns whether a peer waits for nothing but the next turn.
  bool any_unblocked() const { return peers_.size() > blocked_on_pool_; }

  // Counts the turns in a row that left work and moved nothing, since the ports took nothing. A
  // peer that becomes ready resets the count.
  unsigned stalled_turns() const { return stalled_turns_; }
  void set_stalled_turns(unsigned turns) { stalled_turns_ = turns; }

 private:
  ReadyList peers_;
  std::size_t blocked_on_pool_ = 0;  // ready peers that wait for a packet
  unsigned stalled_turns_ = 0;
};

}  // namespace pullman::engine
