#include "engine/peer/peer_table.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "base/check.h"

namespace pullman::engine {
namespace {

std::uint64_t hash_of(const nic::Address& address) {
  const auto* bytes = reinterpret_cast<const char*>(address.bytes.data());
  return boost::hash_range(bytes, bytes + address.length);
}

}  // namespace

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
    // The capacity is never more than the number of peers there may be.
    if (slots_.size() == slots_.capacity()) {
      slots_.reserve(std::min(max_peers_, std::max<std::size_t>(16, 2 * slots_.size())));
    }
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
  slot.tally = {};
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

Peer* PeerTable::find(wire::ConnectionId to) const {
  if (to.index >= slots_.size()) [[unlikely]]
    return nullptr;
  Peer* peer = slots_[to.index].peer.get();
  if (peer == nullptr || peer->mine != to) [[unlikely]]
    return nullptr;
  return peer;
}

Peer* PeerTable::find_epoch(std::uint64_t epoch) const {
  const auto slot = by_epoch_.find(epoch, [&](auto other) { return at(other)->epoch == epoch; });
  return slot == kNoSlot ? nullptr : at(slot);
}

void PeerTable::index_epoch(Peer& peer) {
  if (const Peer* before = find_epoch(peer.epoch)) unindex_epoch(*before);
  by_epoch_.add(peer.epoch, peer.id.index);
}

void PeerTable::unindex_epoch(const Peer& peer) {
  by_epoch_.remove(peer.epoch, peer.id.index);
}

Peer* PeerTable::first_at(const nic::Address& address) const {
  const auto slot = by_address_.find(
      hash_of(address), [&](auto other) { return at(other)->command_address == address; });
  return slot == kNoSlot ? nullptr : at(slot);
}

Peer* PeerTable::find_address(const nic::Address& address) const {
  Peer* last = first_at(address);
  while (last != nullptr && last->next_here != kNoSlot) last = after(*last);
  return last;
}

void PeerTable::index_address(Peer& peer) {
  unindex_address(peer);
  const nic::Address address = peer.command_address;
  if (Peer* last = find_address(address)) {
    last->next_here = peer.id.index;
  } else {
    by_address_.add(hash_of(address), peer.id.index);
  }
}

void PeerTable::move(Peer& peer, const nic::Address& address) {
  unindex_address(peer);
  peer.command_address = address;
  index_address(peer);
}

void PeerTable::unindex_address(Peer& peer) {
  const nic::Address address = peer.command_address;
  Peer* before = first_at(address);
  if (before == &peer) {
    by_address_.remove(hash_of(address), peer.id.index);
    if (peer.next_here != kNoSlot) by_address_.add(hash_of(address), peer.next_here);
  } else {
    while (before != nullptr && before->next_here != peer.id.index) before = after(*before);
    if (before != nullptr) before->next_here = peer.next_here;
  }
  peer.next_here = kNoSlot;
}

void PeerTable::unindex(Peer& peer) {
  unindex_epoch(peer);
  unindex_address(peer);
}

}  // namespace pullman::engine
