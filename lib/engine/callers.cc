// Callers (wire.md 5.5 to 5.9): who a HELLO is from, what it brought until it has proved itself,
// and how many of those there may be. Cold.
#include <algorithm>

#include "base/check.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

// The peer we are calling at one of these addresses; null if there is none.
Peer* Engine::Impl::called_at(const wire::Hello& hello) const {
  for (std::size_t i = 0; i < hello.rail_count; ++i) {
    Peer* called = peers_.find_address(hello.rails[i].command);
    if (called != nullptr && !called->introduced) return called;
  }
  return nullptr;
}

// Simultaneous connects: the HELLO of the lower epoch counts, the other is ignored (wire.md 5.6).
bool Engine::Impl::our_call_wins(const wire::Hello& hello) const {
  const Peer* called = called_at(hello);
  return called != nullptr && called->phase == Phase::kCalling && epoch_ < hello.epoch;
}

// The peer a HELLO is from: one it introduced before, the one we are calling there, or a new one. A
// process that calls anew no longer has its earlier connection; ours ends when the new one has
// proved itself, as the one of a process that was there before does.
Peer* Engine::Impl::peer_for_hello(Instant now, const wire::Hello& hello) {
  Peer* known = peers_.find_epoch(hello.epoch);
  if (known != nullptr && known->theirs == hello.reply_to) return known;
  for (const PeerId id : half_open_) {
    Peer* caller = peers_.find(id);
    if (caller != nullptr && caller->epoch == hello.epoch && caller->theirs == hello.reply_to) {
      return caller;
    }
  }
  if (Peer* called = called_at(hello)) {
    if (known != nullptr) called->replaces = known->id;
    return called;
  }
  make_room_for_caller();
  known = peers_.find_epoch(hello.epoch);  // it may have had to make the room
  const nic::Address& address = hello.rails[hello.rail].command;
  Peer* there = peers_.find_address(address);
  const PeerId replaces = known != nullptr ? known->id : there != nullptr ? there->id : PeerId{};
  const PeerId indexed = there != nullptr ? there->id : PeerId{};
  Peer* peer = make_peer(now, address);
  if (peer == nullptr) return nullptr;
  // Until the newcomer proves itself, the address still means the peer we know there.
  if (Peer* still = peers_.find(indexed)) peers_.index_address(*still);
  peer->called_us = true;
  peer->replaces = replaces;
  half_open_.push_back(peer->id);
  return peer;
}

// Callers that have not proved themselves are few; a new one pushes the oldest out.
void Engine::Impl::make_room_for_caller() {
  const std::size_t most = std::min(kMaxHalfOpen, config_.max_peers);
  while (half_open_.size() >= most) drop_oldest_caller();
}

// Those that have had time enough to prove themselves.
void Engine::Impl::drop_silent_callers(Instant now) {
  while (!half_open_.empty()) {
    const Peer* oldest = peers_.find(half_open_.front());
    if (oldest != nullptr && now - oldest->heard_at < 2 * config_.rto_initial) return;
    drop_oldest_caller();
  }
}

void Engine::Impl::drop_oldest_caller() {
  Peer* oldest = peers_.find(half_open_.front());
  half_open_.pop_front();
  const bool unproved = oldest != nullptr &&
                        (oldest->phase == Phase::kResolving || oldest->phase == Phase::kAnswering);
  if (!unproved) return;
  end_peer(*oldest, Status::kUnreachable);
  discard(*oldest);
}

// What came with a HELLO waits until the caller has proved itself: a caller that is dropped before
// that, and calls again, must not have been heard twice.
void Engine::Impl::hold_riders(Peer& peer, std::span<const std::byte> body) {
  peer.riders = packets_.take(packets_.large_bytes());
  if (peer.riders == nullptr) return;
  PULLMAN_CHECK(body.size() <= peer.riders->room());
  std::copy(body.begin(), body.end(), peer.riders->end());
  peer.riders->used += static_cast<std::uint32_t>(body.size());
}

// A HELLO is acknowledged when its riders are delivered (wire.md 5.9): until its caller has proved
// itself only the number of the last one is kept; after that it is a packet like others.
Verdict Engine::Impl::note_hello(Instant now, Peer& peer, const wire::PacketHeader& header,
                                 std::span<const std::byte> body) {
  if (peer.phase < Phase::kConnected) {
    const auto& acks = peer.link.acks();
    const bool first = peer.hello_heard.type != wire::PacketType::kHello;
    if (first || acks.number_of(header) > acks.number_of(peer.hello_heard)) {
      peer.hello_heard = header;
    }
    return Verdict::kAccepted;
  }
  const Verdict verdict = handle_frames(now, peer, header, body);
  schedule_ack(now, peer);
  return verdict;
}

// Without a place for them they are not acknowledged, and come again in a packet of their own.
void Engine::Impl::deliver_riders(Instant now, Peer& peer) {
  if (peer.riders == nullptr) return;
  const bool fits = peer.link.judge(peer.hello_heard) == reliability::Arrival::kNew;
  if (fits && !act_on(peer, peer.riders->body()).refused) {
    peer.link.handle_arrival(now, peer.hello_heard);
  }
  packets_.give_back(*peer.riders);
  peer.riders = nullptr;
  schedule_ack(now, peer);
}

}  // namespace pullman::engine
