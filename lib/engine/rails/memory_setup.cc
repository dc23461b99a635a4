#include "engine/rails/memory_setup.h"

#include <utility>

#include "base/log.h"
#include "engine/peer/rail_choice.h"

namespace pullman::engine {
namespace {

// The packets leave before all others, in their order.
void pass_to_nics(MemoryRail& rail, Peer& peer) {
  channel::PacketQueue unread;
  while (Packet* packet = rail.take_unread()) unread.push_back(*packet);
  auto& queue = packets_to_leave_again(peer);
  queue.splice(queue.begin(), unread);
}

}  // namespace

void MemorySetup::offer(Peer& peer) {
  if (!peer.may_share || peer.phase != Phase::kConnected) return;
  peer.may_share = false;
  peer.memory = std::make_unique<MemoryLink>();
  MemoryLink& memory = *peer.memory;
  try {
    random_.fill(memory.secret);
    memory.rail.emplace(pairs_->create(memory.secret));
  } catch (const shm::MemoryError& error) {
    return note_fault(error.what());
  }
  memory.state = MemoryState::kOffered;
  peer.memory_due = true;
  peers_.add(peer);
  ready_.mark(peer);
}

std::size_t MemorySetup::write_frame(Peer& peer, std::byte* out) {
  const MemoryLink& memory = *peer.memory;
  peer.memory_due = false;
  wire::MemoryOffer offer{.secret = memory.secret, .name = {}};
  if (memory.state == MemoryState::kOffered) offer.name = memory.rail->pair().name();
  return wire::put_memory(out, offer);
}

// When two offers cross, that of the lower epoch counts. A late offer to a peer that has joined the
// other one, or has left, is void.
bool MemorySetup::handle_frame(Peer& peer, const wire::Frame& frame) {
  const auto offer = wire::decode_memory(frame.data);
  if (!offer) return false;
  MemoryLink* memory = peer.memory.get();
  const bool offered = memory != nullptr && memory->state == MemoryState::kOffered;
  if (offer->name.empty()) {
    if (offered && offer->secret == memory->secret) leave(peer, "the peer cannot join it");
    return true;
  }
  if (memory != nullptr && !(offered && epoch_ > peer.epoch)) return true;
  if (peer.phase != Phase::kConnected) return true;
  if (offered) leave(peer, "the peer's offer crossed ours");
  join(peer, *offer);
  return true;
}

void MemorySetup::join(Peer& peer, const wire::MemoryOffer& offer) {
  peer.may_share = false;
  peer.memory = std::make_unique<MemoryLink>();
  peer.memory->secret = offer.secret;
  if (pairs_ == nullptr) return decline(peer);
  try {
    peer.memory->rail.emplace(pairs_->join(offer.name, offer.secret));
  } catch (const shm::MemoryError& error) {
    note_fault(error.what());
    return decline(peer);
  }
  peers_.add(peer);
  activate(peer, "joined what the peer has offered");
  if (peer.memory->rail->pair().must_wake()) wake(peer);
}

void MemorySetup::decline(Peer& peer) {
  peer.memory_due = true;
  ready_.mark(peer);
}

void MemorySetup::activate_if_joined(Peer& peer) {
  if (!peer.memory->rail->pair().has_joined()) return;
  peer.memory->rail->pair().forget_name();
  activate(peer, "the peer has joined it");
}

void MemorySetup::activate(Peer& peer, const char* how) {
  MemoryLink& memory = *peer.memory;
  memory.rail->pair().meet();
  memory.state = MemoryState::kActive;
  settle_sizes(peer);
  log().debug("peer {}.{}: memory is shared: {}", peer.id.index, peer.id.generation, how);
  if (has_work(peer)) ready_.mark(peer);
}

void MemorySetup::leave(Peer& peer, const char* why) {
  MemoryLink& memory = *peer.memory;
  log().debug("peer {}.{}: memory is left: {}", peer.id.index, peer.id.generation, why);
  memory.rail->end();
  if (memory.rail->pair().must_wake()) wake(peer);
  pass_to_nics(*memory.rail, peer);
  peers_.remove(peer);
  memory.rail.reset();
  memory.state = MemoryState::kLeft;
  peer.memory_due = false;
  settle_sizes(peer);
  if (has_work(peer)) ready_.mark(peer);
}

void MemorySetup::wake(Peer& peer) {
  Rail* rail = peer.rails == nullptr ? &peer.home : rail_for_small(peer, 0);
  peer.memory->wake_due = rail == nullptr;
  if (rail == nullptr) return;
  rail->ping_due = true;
  ready_.mark(peer);
}

void MemorySetup::note_fault(const char* why) {
  if (std::exchange(told_, true)) return;
  log().info("peers on this host are reached by a NIC, and not through memory: {}", why);
}

}  // namespace pullman::engine
