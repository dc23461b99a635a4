#include "engine/session/liveness.h"

#include <algorithm>
#include <array>

#include "engine/session/check_packet.h"
#include "wire/bytes.h"

namespace pullman::engine {

using wire::RailBits;

namespace {

// The pauses between our questions, and after the last one, when a host has said that nobody
// listens. They add up to half a second.
constexpr std::array<Duration, 4> kPauses{
    std::chrono::milliseconds(50), std::chrono::milliseconds(100), std::chrono::milliseconds(150),
    std::chrono::milliseconds(200)};
// After an unknown-peer reply on one rail the next rail is asked after this pause: an engine sends
// one once in 10 ms at most.
constexpr Duration kNextRail = std::chrono::milliseconds(15);

// The time for the true answer, which may be slower than an unknown-peer reply to a CHECK that was
// garbled on the way (the simulator's seed 3612).
constexpr Duration kTimeToAnswer = std::chrono::milliseconds(100);

// The offset of the connection id in the packet's header (wire.md 2.1).
constexpr std::size_t kConnectionAt = 4;
static_assert(nic::PortEvent::kMaxQuoted == kConnectionAt + 8);

std::size_t slot_in(std::uint64_t token) {
  return token & ((std::uint64_t{1} << kSlotBits) - 1);
}

// Returns whether the peer is on none of the rails in use: on each another process is there, or
// nobody.
bool nobody_is_left(const Peer& peer) {
  RailBits met = 0;
  RailBits in_use = 0;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail)) return;
    met |= bit_of(rail);
    if (usable(rail)) in_use |= bit_of(rail);
  });
  const LivenessProbe& probe = peer.checking->probe;
  const RailBits gone = probe.unknown | probe.refused;
  const RailBits asked = in_use != 0 ? in_use : met;
  return gone != 0 && (asked & ~gone) == 0;
}

// Returns whether the event quotes the peer's connection id and proof.
bool quotes_connection(const Peer& peer, const nic::PortEvent& event) {
  const std::byte* connection = event.quoted.data() + kConnectionAt;
  return wire::load32(connection) == peer.theirs.index &&
         wire::load32(connection + 4) == peer.theirs.proof && peer.theirs.proof != 0;
}

}  // namespace

bool Liveness::is_silent(Instant now, const Peer& peer) const {
  return now - peer.heard_at >= std::min(kProbeAfter, config_.peer_timeout / kProbePart);
}

// Whatever was said before the peer was last heard counts for nothing.
LivenessProbe& Liveness::liveness_probe_of(Instant now, Peer& peer) {
  LivenessProbe& probe = checking_of(peer).probe;
  if (peer.heard_at > probe.since) clear_liveness_probe(peer);
  if ((probe.unknown | probe.refused) == 0 && probe.tries == 0) probe.since = now;
  return probe;
}

void Liveness::probe_if_silent(Instant now, Peer& peer) {
  if (!is_silent(now, peer) || !peer.flows() || !was_met_on(peer.home)) return;
  LivenessProbe& probe = liveness_probe_of(now, peer);
  if (now < probe.due || probe.timer.checked_in()) return;
  probe.due = now + std::min(now - peer.heard_at, kLongestProbePause);
  ask_who_it_is(peer);
}

// Asks on the rail behind the last one, in turn. One unknown-peer reply of a round counts, so each
// rail is asked with a token that was told on no other.
void Liveness::ask_who_it_is(Peer& peer) {
  LivenessProbe& probe = peer.checking->probe;
  if (peer.checking->asking.running) return;
  const Rail* next = nullptr;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail) || (probe.unknown & bit_of(rail)) != 0) return;
    const bool behind = next != nullptr && next->number <= probe.rail;
    if (next == nullptr || (behind && rail.number > probe.rail)) next = &rail;
  });
  if (next == nullptr) return;
  peer.checking->asking.round = check_.next_round(peer);
  probe.asked = true;
  probe.rail = next->number;
  check_.ask_on(*next, wire::CheckSize::kSmallest);
}

void Liveness::note_unknown_peer_reply(Instant now, const Rail& rail) {
  Peer& peer = rail.peer;
  LivenessProbe& probe = peer.checking->probe;
  probe.asked = false;
  if (!peer.flows() || peer.heard_at > probe.since || rail.number != probe.rail) return;
  probe.unknown |= bit_of(rail);
  if (probe.timer.checked_in()) return;
  alarms_.rearm(now, nobody_is_left(peer) ? kTimeToAnswer : kNextRail, probe.timer);
}

void Liveness::note_refusal(Instant now, const Rail& rail, const nic::PortEvent& event) {
  Peer& peer = rail.peer;
  if (!peer.flows() || !was_met_on(rail)) return;
  LivenessProbe& probe = liveness_probe_of(now, peer);
  if (quotes_connection(peer, event)) probe.refused |= bit_of(rail);
  if (probe.tries == 0 && !probe.timer.checked_in()) ask_whether_it_lives(now, peer);
}

void Liveness::ask_whether_it_lives(Instant now, Peer& peer) {
  LivenessProbe& probe = peer.checking->probe;
  peer.for_each_rail([&](Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail)) return;
    reclaimer_.drop_probes(rail, kProbesKept);
    rail.ping_due = true;
  });
  ready_.mark(peer);
  ask_who_it_is(peer);
  alarms_.rearm(now, kPauses[probe.tries++], probe.timer);
}

void Liveness::handle_due(Instant now, Peer& peer) {
  LivenessProbe& probe = peer.checking->probe;
  if (!peer.flows() || peer.heard_at > probe.since) return clear_liveness_probe(peer);
  if (probe.tries == 0 && probe.refused == 0) {
    if (nobody_is_left(peer)) return lifecycle_.end(peer, Status::kPeerRestarted);
    if (probe.unknown != 0) ask_who_it_is(peer);
    return;
  }
  if (probe.tries < kPauses.size()) return ask_whether_it_lives(now, peer);
  if (!nobody_is_left(peer)) {
    probe.tries = 0;
    return;
  }
  lifecycle_.end(peer, probe.unknown != 0 ? Status::kPeerRestarted : Status::kPeerDied);
}

wire::Verdict Liveness::handle_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                                                  const wire::Checked& checked) {
  const std::size_t slot = slot_in(checked.round.token);
  Peer* peer = slot < peers_.slots() ? peers_.at(static_cast<std::uint32_t>(slot)) : nullptr;
  if (peer == nullptr || peer->checking == nullptr) return wire::Verdict::kUnknownConnection;
  Asking& asking = peer->checking->asking;
  const Rail* rail = peer->rail(header.rail);
  const bool asked = asking.running || peer->checking->probe.asked;
  // An unknown-peer reply for another epoch answers a copy of our question that was garbled.
  const bool meant = asking.round == checked.round && checked.epoch == peer->epoch;
  if (!asked || !meant || rail == nullptr) {
    return wire::Verdict::kUnknownConnection;
  }
  if (asking.running) {
    asking.wrong |= bit_of(*rail);
  } else {
    note_unknown_peer_reply(now, *rail);
  }
  return wire::Verdict::kAccepted;
}

}  // namespace pullman::engine
