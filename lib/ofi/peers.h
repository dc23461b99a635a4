// Which peer of an endpoint's context an fi_addr_t means, and back.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <vector>

#include "pullman/types.h"

namespace pullman::ofi {

class Peers {
 public:
  void set(fi_addr_t number, PeerId peer) {
    if (number >= peers_.size()) peers_.resize(number + 1, kAnyPeer);
    peers_[number] = peer;
    if (peer.index >= numbers_.size()) numbers_.resize(peer.index + 1);
    Named& named = numbers_[peer.index];
    // An address inserted twice has two numbers; completions tell the first.
    if (named.number != FI_ADDR_NOTAVAIL && named.generation == peer.generation) return;
    named = {number, peer.generation};
  }

  void erase(fi_addr_t number) {
    if (number >= peers_.size() || peers_[number] == kAnyPeer) return;
    const PeerId peer = peers_[number];
    peers_[number] = kAnyPeer;
    Named& named = numbers_[peer.index];
    if (named.number != number) return;
    named = {};
    for (fi_addr_t other = 0; other < peers_.size(); ++other) {
      if (peers_[other] == peer) named = {other, peer.generation};
    }
  }

  // kAnyPeer: the number means nobody.
  PeerId peer(fi_addr_t number) const { return number < peers_.size() ? peers_[number] : kAnyPeer; }

  // FI_ADDR_NOTAVAIL: it has no number.
  fi_addr_t number(PeerId peer) const {
    if (peer.index >= numbers_.size()) return FI_ADDR_NOTAVAIL;
    const Named& named = numbers_[peer.index];
    return named.generation == peer.generation ? named.number : FI_ADDR_NOTAVAIL;
  }

 private:
  struct Named {
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    std::uint32_t generation = 0;
  };

  std::vector<PeerId> peers_;   // by number
  std::vector<Named> numbers_;  // by the peer's index
};

}  // namespace pullman::ofi
