// Chooses the NIC by which a peer is called, and answered (wire.md 5.10): until two engines have
// met, their home rail may be another pair of NICs with each attempt.
#include <algorithm>
#include <utility>

#include "engine/handshake/handshake.h"
#include "engine/session/pending_hello.h"

namespace pullman::engine {

// Returns the next NIC to call the peer from, in turn: one that works, if there is any.
std::optional<std::uint8_t> Handshake::other_module(const Peer& peer) const {
  std::optional<std::uint8_t> found;
  for (std::size_t step = 1; step < nics_.announced(); ++step) {
    const auto i = static_cast<std::uint8_t>((peer.home.module + step) % nics_.announced());
    const bool alike = nics_[i].device().stream == peer.home.nic->device().stream;
    if (!alike || (peer.unresolved >> i & 1) != 0 || (found && nics_.in_trouble(i))) continue;
    const nic::Port& port = nics_.channel(i, ChannelKind::kCommand).port();
    if (port.reach(peer.home.remote) == nic::Reach::kNone) continue;
    found = i;
    if (!nics_.in_trouble(i)) break;
  }
  return found;
}

// Calls by the next NIC. Returns false, and changes nothing, if there is no other one.
bool Handshake::try_next_nic(Peer& peer) {
  const auto next = other_module(peer);
  if (!next) return false;
  leave_home(peer);
  ++peer.call;
  peer.told = static_cast<std::uint8_t>(nics_.announced());
  peer.home.module = *next;
  peer.home.nic = &nics_[*next];
  resolver_.resolve(peer.home, ChannelKind::kCommand, peer.home.remote);
  if (peer.hello != nullptr) rewrite_hello(peer);
  return true;
}

void Handshake::handle_call_overdue(Instant now, Peer& peer, Packet& packet) {
  reliability::Link& link = peer.home.link;
  const bool unanswered =
      link.timeouts() >= kTimeoutsBeforeOther && now - peer.heard_at >= kTimeBeforeOther;
  // The other may have only another of the job's keys: all are tried by one NIC before the next.
  const bool all_keys_tried = peer.key + std::size_t{1} >= keys_;
  const bool moved = unanswered && all_keys_tried && try_next_nic(peer);
  if (!moved && packet.in_channel) return;
  link.take_probe();
  if (is_protected()) peer.key = static_cast<std::uint8_t>((peer.key + 1) % keys_);
  if (moved) return;
  link.abandon(packet);
  packet.state = channel::PacketState::kQueued;
  call(now, peer);
}

// Lets a caller be called at another of its addresses; its own call is answered where it came from.
void Handshake::aim_home(Peer& peer) {
  const nic::Address address = peer.command_address;
  leave_home(peer);
  peer.told = static_cast<std::uint8_t>(nics_.announced());
  peer.home.module = nics_.module_for(address);
  peer.home.nic = &nics_[peer.home.module];
  peer.home.remote = address;
  resolver_.resolve(peer.home, ChannelKind::kCommand, address);
}

void Handshake::handle_no_way(Peer& peer) {
  static_assert(wire::kMaxNics <= 8 * sizeof peer.unresolved);
  if (!peer.introduced && !is_aimed(peer)) return aim_home(peer);  // it is called elsewhere
  peer.unresolved |= 1u << peer.home.module;
  const bool calling = !peer.called_us && peer.phase < Phase::kConnected;
  if (calling && try_next_nic(peer)) return;
  lifecycle_.end(peer, Status::kUnreachable);
}

// Takes the home rail off its NIC. Its destination is kept for an answer that goes there, and given
// back otherwise.
void Handshake::leave_home(Peer& peer) {
  Rail& home = peer.home;
  if (Packet* hello = peer.hello) {
    if (hello->in_channel) withdraw(home, *hello);
    if (hello->state == channel::PacketState::kInFlight) home.link.abandon(*hello);
    hello->state = channel::PacketState::kQueued;
  }
  const nic::Destination to = std::exchange(home.command_to, nic::kInvalidDestination);
  Resolver::drop_answers(home);
  if (peer.said != nullptr && !peer.said->elsewhere) {
    peer.said->elsewhere = true;
    peer.said->to = to;
  } else if (to != nic::kInvalidDestination) {
    command(home).port().forget(to);
  }
}

// Sets where a HELLO is answered: by the NIC that it called, at the address it came from.
void Handshake::aim_answer(Peer& peer, std::uint8_t module, std::uint8_t from) {
  PendingHello& said = *peer.said;
  if (from >= said.hello.nic_count) return;
  const bool same = said.module == module && said.hello.nic == from;
  if (same && said.elsewhere && (said.to != nic::kInvalidDestination || said.resolving)) return;
  aim_answer_at_home(resolver_, peer);
  said.module = module;
  said.hello.nic = from;
  if (module >= peer.told) peer.told = static_cast<std::uint8_t>(nics_.announced());
  if (peer.home.module == module && nic::same_port(peer.home.remote, said.address())) return;
  said.elsewhere = true;
  if (!said.resolving) resolver_.resolve_answer(peer);  // one at a time
}

void Handshake::handle_answer_resolved(Peer& peer, std::size_t module,
                                       const nic::PortEvent& event) {
  PendingHello& said = *peer.said;
  const bool resolved = event.kind == nic::PortEvent::Kind::kResolved;
  said.resolving = false;
  if (said.elsewhere && said.module == module && said.asked == said.hello.nic) {
    said.to = resolved ? event.to : nic::kInvalidDestination;
    return answer(peer);
  }
  if (resolved) nics_.channel(module, ChannelKind::kCommand).port().forget(event.to);
  if (said.elsewhere && said.to == nic::kInvalidDestination) resolver_.resolve_answer(peer);
}

// Our answer has arrived, so the pair of NICs it took is the home rail. If it cannot have been
// sent, it has not arrived, and the home rail stays.
void Handshake::adopt_answer(Peer& peer) {
  PendingHello& said = *peer.said;
  if (!said.elsewhere) return;
  if (said.to == nic::kInvalidDestination) return aim_answer_at_home(resolver_, peer);
  const nic::Destination to = std::exchange(said.to, nic::kInvalidDestination);
  leave_home(peer);
  // The early data of our call leaves by this rail, as a packet like others.
  if (Packet* hello = std::exchange(peer.hello, nullptr)) peer.home.link.lost().push_back(*hello);
  said.elsewhere = false;
  peer.home.module = said.module;
  peer.home.nic = &nics_[said.module];
  peer.home.remote = said.address();
  peer.home.command_to = to;
}

// Returns the peer that is known by another of its addresses, since it called us from there; null
// if there is none. If it has not proved itself, it is called at this address from now on.
Peer* Handshake::find_elsewhere(const nic::Address& address) {
  Peer* connected = nullptr;
  Peer* caller = nullptr;
  peers_.for_each([&](Peer& peer) {
    if (is_at(peer, address)) connected = &peer;
    if (may_be_caller_at(peer, address)) caller = &peer;
  });
  if (connected != nullptr || caller == nullptr) return connected;
  adopt_caller_at(*caller, address);
  return caller;
}

// Returns whether the peer is at this address. That it names the address as its own is no proof,
// unless Config::believe_addresses says so; that one of our rails has reached it there is, even if
// that rail does not reach it now.
bool Handshake::is_at(const Peer& peer, const nic::Address& address) const {
  if (peer.phase != Phase::kConnected) return false;
  const auto same = [&](const nic::Address& other) { return nic::same_port(other, address); };
  bool reached = false;
  peer.for_each_rail([&](const Rail& rail) {
    const bool answered = usable(rail) || upkeep_of(rail).times_left > 0;
    reached = reached || (answered && same(rail.remote));
  });
  if (reached || peer.nic_news == nullptr) return reached;
  const auto& named = peer.nic_news->named;
  return std::any_of(named.begin(), named.end(), same);
}

void Handshake::handle_link_down(std::size_t module) {
  peers_.for_each([&](Peer& peer) {
    const bool calling = !peer.called_us && peer.phase < Phase::kConnected;
    if (!calling || peer.home.module != module) return;
    const auto next = other_module(peer);
    if (next && !nics_.in_trouble(*next)) try_next_nic(peer);
  });
}

}  // namespace pullman::engine
