// Holds all peers of an engine and finds them by handle, by connection id, by epoch and by address.
//
// It is bounded by max_peers. A slot's index is also its connection index; its generation makes old
// handles fail. It knows nothing of what a peer does, and holds the tally of each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/peer/peer.h"
#include "engine/peer/peer_index.h"
#include "engine/peer/tally.h"

namespace pullman::engine {

class PeerTable {
 public:
  explicit PeerTable(std::size_t max_peers) : max_peers_(max_peers) {}

  // Returns the handle for the next peer to be put(); its index is 0xFFFFFFFF if the table is full.
  PeerId next_id();
  Peer& put(std::unique_ptr<Peer> peer);
  // Destroys the peer: nothing finds it any more, and its handle ends.
  void remove(Peer& peer);

  Peer* find(PeerId id) const {
    if (id.index >= slots_.size() || slots_[id.index].generation != id.generation) return nullptr;
    return slots_[id.index].peer.get();
  }
  Peer* find(wire::ConnectionId to) const;
  Peer* at(std::uint32_t index) const { return slots_[index].peer.get(); }
  // Returns what is counted of the peer, from 0.
  Tally& tally_of(const Peer& peer) { return slots_[peer.id.index].tally; }
  const Tally& tally_of(const Peer& peer) const { return slots_[peer.id.index].tally; }
  Rail& rail_of(const Timer& timer) const { return *at(timer.peer)->rail(timer.rail); }
  Peer* find_epoch(std::uint64_t epoch) const;
  Peer* find_address(const nic::Address& address) const;

  // An epoch finds the peer that was indexed last. An address may have several peers, while earlier
  // ones take leave or later ones have not proved themselves; find_address() returns the one that
  // was indexed last.
  void index_epoch(Peer& peer);
  void index_address(Peer& peer);
  // Changes the peer's address.
  void move(Peer& peer, const nic::Address& address);
  // Visits the peers at an address in the order in which they were indexed.
  template <typename Visit>
  void for_each_at(const nic::Address& address, Visit visit) const {
    for (Peer* peer = first_at(address); peer != nullptr; peer = after(*peer)) visit(*peer);
  }
  // Takes a peer that is gone out of the indexes: only its handle and connection id find it.
  void unindex(Peer& peer);

  std::size_t slots() const { return slots_.size(); }
  std::size_t size() const { return used_; }
  bool full() const { return used_ == max_peers_; }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].peer != nullptr) visit(*slots_[i].peer);
    }
  }

 private:
  struct Slot {
    std::unique_ptr<Peer> peer;
    std::uint32_t generation = 0;
    Tally tally;
  };

  Peer* first_at(const nic::Address& address) const;
  Peer* after(const Peer& peer) const {
    return peer.next_here == kNoSlot ? nullptr : at(peer.next_here);
  }
  void unindex_address(Peer& peer);
  void unindex_epoch(const Peer& peer);

  std::size_t max_peers_;
  std::size_t used_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  PeerIndex by_epoch_;
  PeerIndex by_address_;  // the first at each address; the others follow by Peer::next_here
};

}  // namespace pullman::engine
