// Handles callers (wire.md 5.5 to 5.9): which peer a HELLO is from, what it brought until its
// sender has proved itself, and how many of those there may be.
#include <algorithm>

#include "base/check.h"
#include "engine/handshake/handshake.h"
#include "engine/session/pending_hello.h"

namespace pullman::engine {

// Returns the peer that we are calling at one of these addresses, or are to call next; null if
// there is none. Of several it is the first to be born, since there is one connection at a time
// (wire.md 5.8).
Peer* Handshake::called_at(const wire::Hello& hello) const {
  Peer* first = nullptr;
  for (std::size_t i = 0; i < hello.nic_count; ++i) {
    peers_.for_each_at(hello.nics[i].command, [&](Peer& peer) {
      const bool called = !peer.called_us && peer.phase < Phase::kConnected &&
                          !nics_.leads_here(hello.host, hello.nics[i].command);
      if (called && (first == nullptr || peer.is_older_than(*first))) first = &peer;
    });
  }
  return first;
}

// Returns whether this HELLO is ignored for our own call. Of simultaneous connects the HELLO of the
// lower epoch counts (wire.md 5.6), unless the other had been answered before we called, or ours
// goes unanswered.
bool Handshake::our_call_wins(const wire::Hello& hello) const {
  const Peer* called = called_at(hello);
  if (called == nullptr || called->phase == Phase::kResolving || epoch_ >= hello.epoch)
    return false;
  if (called->home.link.timeouts() >= kTimeoutsBeforeAnswer) return false;
  return called->said == nullptr || !called->said->is(hello.epoch, hello.reply_to);
}

// Returns the peer a HELLO is from: one that has proved itself, one that has not yet, the one we
// are calling there, or a new one. Null: there is no place for it now, and it may call again.
Peer* Handshake::peer_for_hello(Instant now, const wire::Hello& hello) {
  Peer* known = peers_.find_epoch(hello.epoch);
  if (known != nullptr && known->theirs == hello.reply_to) return known;
  if (const auto caller = accepts_.find_half_open(hello.epoch, hello.reply_to)) {
    return accepts_.renew(now, *caller) ? peers_.find(*caller) : nullptr;
  }
  if (Peer* called = called_at(hello)) {
    // The first caller that claims to be the peer we call is answered. Our call goes on, and the
    // process that answers it is the one we mean.
    const bool other = called->said != nullptr && !called->said->is(hello.epoch, hello.reply_to);
    if (other) return nullptr;
    const bool anew = known != nullptr && known->command_address == called->command_address;
    if (anew) called->replaces = known->id;
    return called;
  }
  return has_room_for_caller(now) ? new_caller(now, hello) : nullptr;
}

// Makes a peer for a new caller. A process that calls anew no longer has its earlier connection,
// nor has the process that was there before; ours ends when the new one has proved itself.
Peer* Handshake::new_caller(Instant now, const wire::Hello& hello) {
  const nic::Address& address = hello.nics[hello.nic].command;
  const Peer* there = peers_.find_address(address);
  const PeerId replaces = there != nullptr ? there->id : PeerId{};
  Peer* peer = make_peer(now, address, *nics_.module_called(hello));
  if (peer == nullptr) return nullptr;
  // Until the newcomer proves itself, the address still means the peer we know there.
  if (Peer* still = peers_.find(replaces)) peers_.index_address(*still);
  peer->called_us = true;
  peer->replaces = replaces;
  accepts_.add_half_open({peer->id, hello.epoch, hello.reply_to, now, 0});
  return peer;
}

// The user connects to a caller: it is no longer half open, and we call it, too, in case another
// process sent its HELLO.
void Handshake::adopt_caller(Peer& peer) {
  accepts_.remove_half_open(peer);
  peer.called_us = false;
  ready_.mark(peer);
}

// Returns whether the peer is a half-open caller that names this address as its own. Any HELLO may
// do so that comes while we call there (called_at).
bool Handshake::may_be_caller_at(const Peer& peer, const nic::Address& address) const {
  if (!peer.called_us || peer.phase >= Phase::kConnected || peer.said == nullptr) return false;
  const auto& nics = peer.said->hello.nics;
  return std::any_of(nics.begin(), nics.begin() + peer.said->hello.nic_count,
                     [&](const wire::NicInfo& nic) {
                       return nic::same_port(nic.command, address) &&
                              !nics_.leads_here(peer.said->hello.host, address);
                     });
}

// The user connects to a caller by another address than it calls from: it is as if we had called
// there before.
void Handshake::adopt_caller_at(Peer& peer, const nic::Address& address) {
  peers_.move(peer, address);
  adopt_caller(peer);
  // While it is still being resolved, handle_home_resolved() does so later.
  if (peer.home.command_to != nic::kInvalidDestination) aim_home(peer);
}

// We have called a process, and it has answered; it had called us before, which made a peer of its
// own. Our call counts if our epoch is the lower one (wire.md 5.6). Until we know that the process
// has heard so, a late proof of the other call counts for nothing, unless the process has not
// answered for long: it may have left our connection before that was proved.
bool Handshake::is_superseded(const Peer& caller) const {
  const std::uint64_t epoch = caller.said->hello.epoch;
  const Peer* called = caller.called_us ? peers_.find_epoch(epoch) : nullptr;
  return called != nullptr && !called->called_us && called->said != nullptr &&
         called->phase == Phase::kConnected && epoch_ < epoch &&
         called->home.link.timeouts() < kTimeoutsBeforeAnswer;
}

void Handshake::drop_superseded(const Peer& peer) {
  if (epoch_ >= peer.epoch) return;
  for (const PeerId id : accepts_.half_open_of(peer.epoch)) {
    if (id == peer.id) continue;
    Peer& caller = *peers_.find(id);
    lifecycle_.end(caller, Status::kPeerClosed);
    lifecycle_.discard(caller);
  }
}

bool Handshake::has_room_for_caller(Instant now) {
  if (accepts_.half_open_is_full()) drop_silent_callers(now);
  return !accepts_.half_open_is_full();
}

// Drops the callers that have had time enough to prove themselves.
void Handshake::drop_silent_callers(Instant now) {
  while (accepts_.oldest_is_overdue(now)) drop_oldest_caller();
}

void Handshake::drop_oldest_caller() {
  Peer& oldest = *peers_.find(accepts_.oldest_half_open());
  lifecycle_.end(oldest, Status::kUnreachable);
  lifecycle_.discard(oldest);
}

// Keeps what a HELLO said until its sender has proved itself. Only the last of its repetitions is
// remembered; it is acknowledged when its early data is delivered (wire.md 5.9). Returns false if
// this is not the last one.
bool Handshake::note_hello(Instant now, Peer& peer, const wire::PacketHeader& header,
                           std::uint8_t key, const wire::Hello& hello,
                           std::span<const std::byte> body) {
  if (peer.said == nullptr) {
    peer.said = std::make_unique<PendingHello>();
    peer.said->hello = hello;
  }
  PendingHello& said = *peer.said;
  const auto number = [&](const wire::PacketHeader& of) {
    return expand(of.number, hello.first_number);
  };
  const bool first = said.header.type != wire::PacketType::kHello;
  if (!first && number(header) <= number(said.header)) return false;
  said.header = header;
  said.key = key;
  said.heard_at = now;
  said.hello.call = hello.call;
  if (!peer.introduced) aim_answer(peer, *nics_.module_called(hello), hello.nic);
  if (!first) return true;
  said.crossed = peer.hello != nullptr;
  hold_early_data(said, body);
  return true;
}

// Keeps the early data of a HELLO, too: that of a caller that is dropped before it has proved
// itself, and calls again, must not be delivered twice.
void Handshake::hold_early_data(PendingHello& said, std::span<const std::byte> body) {
  said.early_data = parts_.packets.take(parts_.packets.large_bytes());
  if (said.early_data == nullptr) return;
  PULLMAN_CHECK(body.size() <= said.early_data->room());
  std::copy(body.begin(), body.end(), said.early_data->end());
  said.early_data->used += static_cast<std::uint32_t>(body.size());
}

// Delivers the early data. If there was no packet to keep it in, it is not acknowledged, and comes
// again in a packet of its own.
void Handshake::deliver_early_data(Instant now, Peer& peer) {
  const PendingHello& said = *peer.said;
  wire::FrameList early_data;
  if (said.early_data != nullptr && early_data.read(said.early_data->body()) &&
      peer.home.link.judge(said.header) == reliability::Arrival::kNew &&
      !frame_handler_.act_on(peer, early_data).refused) {
    peer.home.link.handle_arrival(said.heard_at, said.header);
    frame_handler_.follow_up(now, peer);
  }
  forget_hello(resolver_, parts_.packets, peer);
  acks_.schedule(now, peer.home);
}

}  // namespace pullman::engine
