#include "engine/nic_changes.h"

#include <utility>
#include <vector>

namespace pullman::engine {

bool NicChanges::is_in_use(std::size_t slot) const {
  bool any = false;
  peers_.for_each([&](const Peer& peer) {
    const bool unproved = peer.called_us && peer.phase < Phase::kConnected;
    if (peer.phase == Phase::kGone || unproved) return;
    peer.for_each_rail([&](const Rail& rail) { any = any || (nics_of(rail) >> slot & 1) != 0; });
  });
  return any;
}

template <typename Visit>
void NicChanges::for_each_rail_by(std::size_t slot, Visit visit) {
  peers_.for_each([&](Peer& peer) {
    peer.for_each_rail([&](Rail& rail) {
      if (rail.module == slot) visit(rail);
    });
  });
}

void NicChanges::set(Instant now, std::size_t slot, std::unique_ptr<channel::Module> module) {
  const bool replaces = slot < nics_.size();
  if (replaces) {
    ack_handler_.handle_deferred(now);
    leave_module(now, slot);
  }
  const auto before = nics_.put(slot, std::move(module));
  enlist(slot);
  if (replaces) join_module(now, slot);
  tell_peers();
}

void NicChanges::move(Instant now, std::size_t from, std::size_t to) {
  ack_handler_.handle_deferred(now);
  for (const std::size_t slot : {from, to}) {
    leave_module(now, slot);
    port_events_.forget(slot);
  }
  nics_.swap(from, to);
  nics_.set_link(from, false);
  for (const std::size_t slot : {from, to}) {
    enlist(slot);
    join_module(now, slot);
  }
  tell_peers();
}

void NicChanges::leave_module(Instant now, std::size_t slot) {
  drop_callers_at(slot);
  for_each_rail_by(slot, [&](Rail& rail) { detach(now, rail); });
  forget_channels(slot);
}

void NicChanges::join_module(Instant now, std::size_t slot) {
  for_each_rail_by(slot, [&](Rail& rail) { attach(now, rail); });
}

void NicChanges::enlist(std::size_t slot) {
  poller_.add(slot, !nics_.is_further_address(slot) || is_in_use(slot));
}

void NicChanges::tell_peers() {
  nics_.announce_again();
  credits_.share();
  port_events_.poll_soon();
  peers_.for_each([&](Peer& peer) {
    if (peer.phase <= Phase::kClosing) tell_nics(peer, ready_);
  });
}

// Received packets that were not read are lost, and what was asked is not answered.
void NicChanges::forget_channels(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    Channel& channel = nics_.channel(slot, kind);
    if (poller_.has_deferred(channel)) channel.give_back(channel.receive());
  }
  poller_.forget(slot);
  nics_.forget_state(slot);
  resolver_.forget(slot);
  replies_.forget(slot);
}

// Drops the callers there that have not proved themselves, since they call again.
void NicChanges::drop_callers_at(std::size_t slot) {
  std::vector<PeerId> dropped;
  peers_.for_each([&](Peer& peer) {
    const bool answered_there = peer.said != nullptr && peer.said->module == slot;
    const bool unproved = peer.called_us && peer.phase < Phase::kConnected;
    if (unproved && (peer.home.module == slot || answered_there)) {
      dropped.push_back(peer.id);
    } else if (answered_there) {
      resolver_.release(slot, ChannelKind::kCommand, peer.said->to);
      peer.said->resolving = false;
    }
  });
  for (const PeerId id : dropped) {
    Peer& peer = *peers_.find(id);
    lifecycle_.end(peer, Status::kUnreachable);
    lifecycle_.discard(peer);
  }
}

// Takes the rail's packets and destinations away from its NIC.
void NicChanges::detach(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  if (peer.phase != Phase::kGone) {
    if (peer.rails != nullptr) rails_.leave(now, rail, RailReason::kAddressGone);
    reclaimer_.pull_out(rail);
    if (peer.rails != nullptr) reclaimer_.drop_probes(rail);
  }
  resolver_.release(rail);
}

// Lets the rail go on by its NIC's new ports.
void NicChanges::attach(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  rail.nic = &nics_[rail.module];
  if (peer.phase == Phase::kGone) return;
  if (peer.rails != nullptr) rails_.handle_link_up(now, rail);
  Resolver::drop_answers(rail);
  if (peer.rails != nullptr) return resolver_.resolve_both(rail);
  if (Packet* hello = peer.phase < Phase::kConnected ? peer.hello : nullptr) {
    if (hello->state == channel::PacketState::kInFlight) rail.link.abandon(*hello);
    hello->state = channel::PacketState::kQueued;
    ++peer.call;
    handshake_.rewrite_hello(peer);
  }
  resolver_.resolve(rail, ChannelKind::kCommand, rail.remote);
}

}  // namespace pullman::engine
