// The peers whose memory is to be polled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/peer/peer.h"

namespace pullman::engine {

class MemoryPeers {
 public:
  void add(Peer& peer) { peers_.push_back(&peer); }
  void remove(Peer& peer) { std::erase(peers_, &peer); }
  bool empty() const { return peers_.empty(); }

  // Visits each of them. The visit may remove the one that is visited, and no other.
  template <typename Visit>
  void for_each(Visit visit) {
    for (std::size_t i = 0; i < peers_.size();) {
      Peer* const peer = peers_[i];
      visit(*peer);
      if (i < peers_.size() && peers_[i] == peer) ++i;
    }
  }

 private:
  std::vector<Peer*> peers_;
};

}  // namespace pullman::engine
