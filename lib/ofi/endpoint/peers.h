// Maps an fi_addr_t to a peer of an endpoint's context, and back. Its highest bits may name a
// receive context of the peer (fi_rx_addr()).
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
    // An address that was inserted twice has two numbers; completions tell the first.
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

  // Makes the highest `bits` bits name a receive context.
  void name_contexts(unsigned bits) {
    context_shift_ = kAddressBits - bits;
    number_mask_ = bits == 0 ? ~fi_addr_t{0} : (fi_addr_t{1} << context_shift_) - 1;
  }
  fi_addr_t without_context(fi_addr_t address) const { return address & number_mask_; }
  std::uint64_t context(fi_addr_t address) const {
    return address <= number_mask_ ? 0 : address >> context_shift_;
  }

  // Returns kAnyPeer if the number names no peer.
  PeerId peer(fi_addr_t address) const {
    const fi_addr_t number = without_context(address);
    return number < peers_.size() ? peers_[number] : kAnyPeer;
  }

  // Returns FI_ADDR_NOTAVAIL if the peer has no number.
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

  static constexpr unsigned kAddressBits = 64;

  unsigned context_shift_ = kAddressBits;
  fi_addr_t number_mask_ = ~fi_addr_t{0};
  std::vector<PeerId> peers_;   // by number
  std::vector<Named> numbers_;  // by the peer's index
};

}  // namespace pullman::ofi
