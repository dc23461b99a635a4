// Functions of the state of one peer or one of its rails. set_heard(), clear_liveness_probe() and
// forget_fault() change it, and news_of() and checking_of() make what the peer did not have yet; no
// other does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/peer/peer.h"

namespace pullman::engine {

// Returns whether the peer's state is one that its phase allows.
bool is_consistent(const Peer& peer);

// --- rails

inline Channel& command(const Rail& rail) {
  return rail.nic->channel(ChannelKind::kCommand);
}
inline Channel& data(const Rail& rail) {
  return rail.nic->channel(ChannelKind::kData);
}
// The peer must have several rails.
inline RailUpkeep& upkeep_of(const Rail& rail) {
  return *rail.peer.rails->upkeep[rail.number];
}
inline bool usable(const Rail& rail) {
  return rail.peer.rails == nullptr || upkeep_of(rail).health.usable();
}
// Returns the NICs of ours that a rail needs, a bit for each: its packets may leave by one and come
// back by another (wire.md 9.3).
inline std::uint32_t nics_of(const Rail& rail) {
  const std::uint32_t out = std::uint32_t{1} << rail.module;
  return rail.peer.rails == nullptr ? out : out | std::uint32_t{1} << upkeep_of(rail).here;
}
bool others_up(const Rail& rail);
bool any_usable(const Peer& peer);
// Returns whether the peer was at the other end of that rail: what we sent there has arrived, or it
// called us by it. A rail on which nothing has arrived may have led to another process from the
// start.
bool was_met_on(const Rail& rail);
// Returns whether the home rail leads to the address at which the peer is called.
inline bool is_aimed(const Peer& peer) {
  return nic::same_port(peer.home.remote, peer.command_address);
}

// --- what is in flight

// Returns the number of packets in flight. Rails that are not usable carry only probes, which do
// not count.
std::size_t in_flight(const Peer& peer);
// Returns whether no packet is in flight or to be sent again.
bool nothing_to_deliver(const Peer& peer);
// Returns the queue of packets that leave again before all others, by whatever rail there is.
inline channel::PacketQueue& packets_to_leave_again(Peer& peer) {
  return peer.rails != nullptr ? peer.rails->evacuated : peer.home.link.lost();
}
// Returns the number of packets in memory that the peer may not have read.
std::size_t in_memory(const Peer& peer);
// Returns whether anything but a probe is in flight or to be sent again.
bool has_unacked_data(const Peer& peer);

// --- what there is to send

// Returns whether all that was sent has been acknowledged. Messages without allowance are announced
// only then, since allowance may be on its way back before.
bool all_was_heard(const Peer& peer);
// The outbox is asked first, since this is called with every packet and hardly any peer has a
// message that waits.
inline bool may_announce(const Peer& peer) {
  return peer.outbox.may_announce() && all_was_heard(peer);
}
// Returns whether frames that belong to no message are due.
inline bool has_control(const Peer& peer) {
  return peer.inbox.has_frames() || peer.bye_due || peer.memory_due ||
         (peer.rails != nullptr && peer.rails->reports_due);
}
// The same without the frames that leave only by a NIC.
inline bool has_memory_control(const Peer& peer) {
  return peer.inbox.has_frames() || (peer.rails != nullptr && peer.rails->reports_due);
}
// The same as has_control() without an ALLOWANCE, which waits for a packet that carries it.
inline bool has_pending_frames(const Peer& peer) {
  return peer.inbox.has_answers() || peer.bye_due || peer.memory_due ||
         (peer.rails != nullptr && peer.rails->reports_due);
}
// Returns the largest size of the control frames that are due, in bytes.
std::size_t control_bytes(const Peer& peer);
bool has_work(const Peer& peer);
// Returns whether the rail has a probe or lost packets to send.
bool has_work(const Rail& rail);
bool rails_have_work(const Peer& peer);
// Returns the same, if the link lets it leave now.
bool can_tend(const Rail& rail);
// Returns whether only small messages wait and all of them may leave.
bool leaves_whole(const Peer& peer);

// --- lists of our NICs

// Returns whether a list of NICs is due to the peer and may be sent (wire.md 9.11). WAYS come
// first, since they refer to the NICs that were told before.
bool tells_nics(const Peer& peer);
bool holds_list(const Packet& packet);
// Returns whether the packet holds a list and a newer one has been written since.
bool holds_old_list(const Packet& packet, const Peer& peer);
NicNews& news_of(Peer& peer);  // made if there was none
// Returns when the newest list of a peer with several rails may be taken; kNever if none waits.
Instant list_due(const Peer& peer);

// --- checks

inline wire::RailBits bit_of(const Rail& rail) {
  return static_cast<wire::RailBits>(1u << rail.number);
}
Checking& checking_of(Peer& peer);  // made if there was none
// Changes when the peer was last heard. Signs of its end that came since still count.
void set_heard(Peer& peer, Instant at);
// The peer has shown that it is alive and the same process. The timer stays armed: it paces the
// questions that other hosts make us ask.
void clear_liveness_probe(Peer& peer);
// Marks the fault that was found on the rail as outdated, since the rail carries again.
void forget_fault(const Rail& rail);
// Returns the size of a CHECK on that rail, in bytes.
std::size_t check_bytes(const Rail& rail, wire::CheckSize size);

}  // namespace pullman::engine
