// Is a peer that is not heard still there, and still the same process? (wire.md 5.7.) Its host may
// say that nobody listens at its ports, another process that it is not the one we know; both are
// only believed when the peer itself, asked on every rail, says nothing. Bounded, whoever says what
// and however often. Cold.
#include <algorithm>
#include <array>

#include "engine/check_packet.h"
#include "engine/engine_impl.h"
#include "wire/bytes.h"

namespace pullman::engine {

using wire::RailBits;

namespace {

// Where a host has said that nobody listens: between our questions, and behind the last. All are
// over well within a second.
constexpr std::array<Duration, 4> kPauses{
    std::chrono::milliseconds(50), std::chrono::milliseconds(100), std::chrono::milliseconds(150),
    std::chrono::milliseconds(200)};
// Who was denied on one rail is asked on the next one after so long: strangers answer once in 10
// ms.
constexpr Duration kNextRail = std::chrono::milliseconds(15);

// For the true answer, which may be slower than a denial of what was garbled on the way (the
// simulator's seed 3612).
constexpr Duration kTimeToAnswer = std::chrono::milliseconds(100);

// Of the packet's header (wire.md 2.1).
constexpr std::size_t kConnectionAt = 4;
static_assert(nic::PortEvent::kMaxQuoted == kConnectionAt + 8);

}  // namespace

// This process was at the other end of that rail: what we sent there has arrived, or it called. A
// rail on which nothing has arrived may have led elsewhere from the beginning.
bool Engine::Impl::was_met_on(const Rail& rail) {
  return rail.link.packets_arrived() != 0 || (rail.number == 0 && rail.peer.called_us);
}

bool Engine::Impl::is_silent(Instant now, const Peer& peer) const {
  return now - peer.heard_at >= std::min(kDoubt, config_.peer_timeout / kDoubtPart);
}

// What was said before the peer was heard counts for nothing.
LivenessProbe& Engine::Impl::liveness_probe_of(Instant now, Peer& peer) {
  LivenessProbe& doubt = checking_of(peer).doubt;
  if (peer.heard_at > doubt.since) clear_liveness_probe(peer);
  if ((doubt.denied | doubt.refused) == 0 && doubt.tries == 0) doubt.since = now;
  return doubt;
}

// Silence begins later than it did: the peer has not been heard for that.
void Engine::Impl::set_heard(Peer& peer, Instant at) {
  LivenessProbe* doubt = peer.checking == nullptr ? nullptr : &peer.checking->doubt;
  const bool goes_on = doubt != nullptr && doubt->since >= peer.heard_at;
  peer.heard_at = at;
  if (goes_on) doubt->since = std::max(doubt->since, at);
}

// It is there, and the same. (The timer stays: it paces what strangers make us ask.)
void Engine::Impl::clear_liveness_probe(Peer& peer) {
  LivenessProbe& doubt = peer.checking->doubt;
  doubt.asked = false;
  doubt.denied = doubt.refused = 0;
  doubt.tries = 0;
}

// Something is overdue. Who was killed and started anew on its port drops what we send, and need
// not call us: it is asked for the process that we know. Seldom: who computes does not read what
// comes.
void Engine::Impl::doubt(Instant now, Peer& peer) {
  if (!is_silent(now, peer) || !peer.flows() || !was_met_on(peer.home)) return;
  LivenessProbe& doubt = liveness_probe_of(now, peer);
  if (now < doubt.due || doubt.timer.checked_in()) return;
  doubt.due = now + std::min(now - peer.heard_at, kLongestDoubt);
  ask_who_it_is(peer);
}

// On the rail behind the one before, round and round. One denial counts of a round: each rail is
// asked with words that were told on no other.
void Engine::Impl::ask_who_it_is(Peer& peer) {
  LivenessProbe& doubt = peer.checking->doubt;
  if (peer.checking->asking.running) return;
  const Rail* next = nullptr;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail) || (doubt.denied & bit_of(rail)) != 0) return;
    const bool behind = next != nullptr && next->number <= doubt.rail;
    if (next == nullptr || (behind && rail.number > doubt.rail)) next = &rail;
  });
  if (next == nullptr) return;
  peer.checking->asking.round = next_round(peer);
  doubt.asked = true;
  doubt.rail = next->number;
  ask_on(*next, wire::CheckSize::kSmallest);
}

void Engine::Impl::note_unknown_peer_reply(Instant now, const Rail& rail) {
  Peer& peer = rail.peer;
  LivenessProbe& doubt = peer.checking->doubt;
  doubt.asked = false;
  if (!peer.flows() || peer.heard_at > doubt.since || rail.number != doubt.rail) return;
  doubt.denied |= bit_of(rail);
  if (doubt.timer.checked_in()) return;
  rearm(now, doubt.timer, nobody_is_left(peer) ? kTimeToAnswer : kNextRail);
}

// A host says that nobody listens at a port of the peer. Anybody can say so in its name, so it
// makes us ask at once, and counts only if it quotes what nobody off the path knows. (A live peer's
// host does not say it; a filter does.)
void Engine::Impl::note_refusal(Instant now, const Rail& rail, const nic::PortEvent& event) {
  Peer& peer = rail.peer;
  if (!peer.flows() || !was_met_on(rail)) return;
  LivenessProbe& doubt = liveness_probe_of(now, peer);
  if (quotes_us(peer, event)) doubt.refused |= bit_of(rail);
  if (doubt.tries == 0 && !doubt.timer.checked_in()) ask_whether_it_lives(now, peer);
}

// The connection's name there, with the proof.
bool Engine::Impl::quotes_us(const Peer& peer, const nic::PortEvent& event) {
  const std::byte* connection = event.quoted.data() + kConnectionAt;
  return wire::load32(connection) == peer.theirs.index &&
         wire::load32(connection + 4) == peer.theirs.proof && peer.theirs.proof != 0;
}

void Engine::Impl::ask_whether_it_lives(Instant now, Peer& peer) {
  LivenessProbe& doubt = peer.checking->doubt;
  peer.for_each_rail([&](Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail)) return;
    drop_probes(rail, kQuestionsKept);
    rail.ping_due = true;
  });
  mark_ready(peer);
  ask_who_it_is(peer);
  rearm(now, doubt.timer, kPauses[doubt.tries++]);
}

void Engine::Impl::handle_liveness_due(Instant now, Peer& peer) {
  LivenessProbe& doubt = peer.checking->doubt;
  if (!peer.flows() || peer.heard_at > doubt.since) return clear_liveness_probe(peer);
  if (doubt.tries == 0 && doubt.refused == 0) {
    if (nobody_is_left(peer)) return end_peer(peer, Status::kPeerRestarted);
    if (doubt.denied != 0) ask_who_it_is(peer);
    return;
  }
  if (doubt.tries < kPauses.size()) return ask_whether_it_lives(now, peer);
  if (!nobody_is_left(peer)) {
    doubt.tries = 0;
    return;
  }
  end_peer(peer, doubt.denied != 0 ? Status::kPeerRestarted : Status::kPeerDied);
}

// On none of the rails in use: another process is there, or nobody.
bool Engine::Impl::nobody_is_left(const Peer& peer) {
  RailBits met = 0;
  RailBits in_use = 0;
  peer.for_each_rail([&](const Rail& rail) {
    if (!rail.resolved() || !was_met_on(rail)) return;
    met |= bit_of(rail);
    if (usable(rail)) in_use |= bit_of(rail);
  });
  const LivenessProbe& doubt = peer.checking->doubt;
  const RailBits gone = doubt.denied | doubt.refused;
  const RailBits asked = in_use != 0 ? in_use : met;
  return gone != 0 && (asked & ~gone) == 0;
}

}  // namespace pullman::engine
