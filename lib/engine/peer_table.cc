#include "engine/peer_table.h"

#include "base/check.h"

namespace pullman::engine {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::kResolving:
      return "resolving";
    case Phase::kCalling:
      return "calling";
    case Phase::kAnswering:
      return "answering";
    case Phase::kConnected:
      return "connected";
    case Phase::kClosing:
      return "closing";
    case Phase::kFarewell:
      return "farewell";
    case Phase::kGone:
      return "gone";
  }
  return "?";
}

PeerId PeerTable::next_id() {
  if (full()) return kAnyPeer;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  return {free_.back(), slots_[free_.back()].generation};
}

Peer& PeerTable::put(std::unique_ptr<Peer> peer) {
  PULLMAN_CHECK(!free_.empty() && free_.back() == peer->id.index);
  free_.pop_back();
  ++used_;
  Slot& slot = slots_[peer->id.index];
  slot.peer = std::move(peer);
  return *slot.peer;
}

void PeerTable::remove(Peer& peer) {
  unindex(peer);
  const std::uint32_t index = peer.id.index;
  slots_[index].peer.reset();
  ++slots_[index].generation;
  free_.push_back(index);
  --used_;
}

Peer* PeerTable::find(PeerId id) const {
  if (id.index >= slots_.size() || slots_[id.index].generation != id.generation) return nullptr;
  return slots_[id.index].peer.get();
}

Peer* PeerTable::find(wire::ConnectionId to) const {
  if (to.index >= slots_.size()) return nullptr;
  Peer* peer = slots_[to.index].peer.get();
  return peer != nullptr && peer->mine == to ? peer : nullptr;
}

Peer* PeerTable::find_epoch(std::uint64_t epoch) const {
  const auto at = by_epoch_.find(epoch);
  return at == by_epoch_.end() ? nullptr : at->second;
}

const std::vector<Peer*>& PeerTable::all_at(const nic::Address& address) const {
  const auto at = by_address_.find(address);
  return at == by_address_.end() ? nobody_ : at->second;
}

Peer* PeerTable::find_address(const nic::Address& address) const {
  const auto& peers = all_at(address);
  return peers.empty() ? nullptr : peers.back();
}

void PeerTable::index_epoch(Peer& peer) {
  by_epoch_[peer.epoch] = &peer;
}

void PeerTable::index_address(Peer& peer) {
  auto& peers = by_address_[peer.command_address];
  std::erase(peers, &peer);
  peers.push_back(&peer);
}

void PeerTable::unindex(Peer& peer) {
  if (const auto at = by_epoch_.find(peer.epoch); at != by_epoch_.end() && at->second == &peer) {
    by_epoch_.erase(at);
  }
  const auto at = by_address_.find(peer.command_address);
  if (at == by_address_.end()) return;
  std::erase(at->second, &peer);
  if (at->second.empty()) by_address_.erase(at);
}

}  // namespace pullman::engine
