// Questions about one peer or one of its rails whose answers follow from its state alone. They
// change nothing but where a name says so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/peer/peer.h"

namespace pullman::engine {

// What holds of a peer in each phase of its life.
bool is_consistent(const Peer& peer);

// --- rails

inline Channel& command(const Rail& rail) {
  return rail.nic->channel(ChannelKind::kCommand);
}
inline Channel& data(const Rail& rail) {
  return rail.nic->channel(ChannelKind::kData);
}
// Of a peer with several rails.
inline RailUpkeep& upkeep_of(const Rail& rail) {
  return *rail.peer.rails->upkeep[rail.number];
}
inline bool usable(const Rail& rail) {
  return rail.peer.rails == nullptr || upkeep_of(rail).health.usable();
}
// Our NICs that a rail needs, a bit for each: it may leave by one and come back by another (wire.md
// 9.3).
inline std::uint32_t nics_of(const Rail& rail) {
  const std::uint32_t out = std::uint32_t{1} << rail.module;
  return rail.peer.rails == nullptr ? out : out | std::uint32_t{1} << upkeep_of(rail).here;
}
bool others_up(const Rail& rail);
bool any_usable(const Peer& peer);
// This process was at the other end of that rail: what we sent there has arrived, or it called. A
// rail on which nothing has arrived may have led elsewhere from the beginning.
bool was_met_on(const Rail& rail);
// Its home rail leads where it is called.
inline bool is_aimed(const Peer& peer) {
  return nic::same_port(peer.home.remote, peer.command_address);
}

// --- what is in flight

// In packets; on rails that are not used are probes only, which do not count.
std::size_t in_flight(const Peer& peer);
// No packet is in flight or to be sent again.
bool nothing_to_deliver(const Peer& peer);
// Something other than a probe is in flight or to be sent again.
bool has_unacked_data(const Peer& peer);

// --- what there is to send

// Messages without allowance are announced when all that was sent has been heard of: it may just be
// on its way back.
bool all_was_heard(const Peer& peer);
// Nearly no peer has anything that waits: asked with every packet.
inline bool may_announce(const Peer& peer) {
  return peer.outbox.may_announce() && all_was_heard(peer);
}
// Frames wait that belong to no message.
inline bool has_control(const Peer& peer) {
  return peer.inbox.has_frames() || peer.bye_due ||
         (peer.rails != nullptr && peer.rails->reports_due);
}
// The same without an allowance, which waits for a packet to ride on.
inline bool has_pending_frames(const Peer& peer) {
  return peer.inbox.has_answers() || peer.bye_due ||
         (peer.rails != nullptr && peer.rails->reports_due);
}
// The most bytes that control frames take.
std::size_t control_bytes(const Peer& peer);
bool has_work(const Peer& peer);
// A probe, or lost packets.
bool has_work(const Rail& rail);
bool rails_have_work(const Peer& peer);
// The same, and the link lets it leave now.
bool can_tend(const Rail& rail);
// Only small messages wait, and all of them may leave.
bool leaves_whole(const Peer& peer);

// --- lists of our NICs

// It is to be told a list (wire.md 9.11), and may be: WAYS come first, and mean the NICs that were
// told before.
bool tells_nics(const Peer& peer);
bool holds_list(const Packet& packet);
// A newer one has been written since.
bool holds_old_list(const Packet& packet, const Peer& peer);
NicNews& news_of(Peer& peer);  // made if there was none
// When the newest list of a peer with several rails may be taken; never: none waits.
Instant list_due(const Peer& peer);

// --- checks

inline wire::RailBits bit_of(const Rail& rail) {
  return static_cast<wire::RailBits>(1u << rail.number);
}
Checking& checking_of(Peer& peer);  // made if there was none
// Changes when it was heard last. Signs of its end that came since still count.
void set_heard(Peer& peer, Instant at);
// It is there, and the same process. (The timer stays: it paces what others make us ask.)
void clear_liveness_probe(Peer& peer);
// The rail carries again: a fault that was found is of before.
void forget_fault(const Rail& rail);
// Of a question on that rail.
std::size_t check_bytes(const Rail& rail, wire::CheckSize size);

}  // namespace pullman::engine
