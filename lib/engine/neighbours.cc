#include "engine/neighbours.h"

#include <algorithm>

#include "engine/peer/peer_queries.h"

namespace pullman::engine {
namespace {

bool goes_direct(const Peer& peer) {
  if (peer.memory_rail() != nullptr) return true;
  if (peer.rails == nullptr) return !peer.home.nic->device().relayed;
  bool up = false;
  bool usable_directly = false;
  bool usable_relayed = false;
  peer.for_each_rail([&](const Rail& rail) {
    if (!usable(rail) || !rail.resolved()) return;
    const bool relayed = rail.nic->device().relayed;
    up = up || (!relayed && upkeep_of(rail).health.up());
    (relayed ? usable_relayed : usable_directly) = true;
  });
  return up || (usable_directly && !usable_relayed);
}

}  // namespace

bool Neighbours::is_neighbour(PeerId id) const {
  const Peer* peer = peers_.find(id);
  return peer != nullptr && peer->phase < Phase::kClosing && goes_direct(*peer);
}

std::optional<PeerId> Neighbours::neighbour_at(const nic::Address& address) const {
  std::optional<PeerId> found;
  peers_.for_each_at(address, [&](const Peer& peer) {
    if (peer.phase == Phase::kConnected && goes_direct(peer)) found = peer.id;
  });
  return found;
}

bool Neighbours::is_at(PeerId id, const nic::Address& address) const {
  const Peer* peer = peers_.find(id);
  if (peer == nullptr) return false;
  const auto same = [&](const nic::Address& other) {
    return nic::same_port(nic::unrelayed(other), address);
  };
  if (same(peer->command_address)) return true;
  if (peer->rails == nullptr) return false;
  const auto& theirs = peer->rails->theirs;
  return std::any_of(theirs.begin(), theirs.end(),
                     [&](const wire::NicInfo& nic) { return same(nic.command); });
}

nic::Address Neighbours::address_of(PeerId id) const {
  const Peer* peer = peers_.find(id);
  return peer == nullptr ? nic::Address{} : nic::Address(peer->command_address);
}

void Neighbours::disconnect_relayed(Instant now) {
  peers_.for_each([&](const Peer& peer) {
    if (peer.phase < Phase::kClosing && !goes_direct(peer)) lifecycle_.disconnect(now, peer.id);
  });
}

bool Neighbours::any_relayed() const {
  bool any = false;
  peers_.for_each(
      [&](const Peer& peer) { any = any || (peer.phase < Phase::kGone && !goes_direct(peer)); });
  return any;
}

}  // namespace pullman::engine
