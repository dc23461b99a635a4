// By which NIC a peer is called, and answered (wire.md 5.10): until two have met, their home rail
// may be another pair of NICs with each attempt. Cold.
#include <algorithm>
#include <utility>

#include "engine/engine_impl.h"
#include "nic/prefix.h"

namespace pullman::engine {

// One of our NICs has an address of its kind: no other can get there.
bool Engine::Impl::has_family_of(const nic::Address& address) const {
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& module) {
    return module->channel(ChannelKind::kCommand).port().address().kind == address.kind;
  });
}

// The NIC to call an address from: the first that reaches it best, of those that work.
std::uint8_t Engine::Impl::module_for(const nic::Address& address) const {
  const auto worth = [&](std::size_t m) {
    const auto reach = modules_[m]->channel(ChannelKind::kCommand).port().reach(address);
    if (reach == nic::Reach::kNone) return 0;
    const nic::Device& device = modules_[m]->device();
    const bool neighbour = device.prefix_bits != 0 && device.address.kind == address.kind &&
                           nic::contains({device.address, device.prefix_bits}, address);
    return (in_trouble(m) ? 0 : 16) + 2 * static_cast<int>(reach) + (neighbour ? 1 : 0);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < nics_told_; ++i) {
    const bool alike = modules_[i]->device().stream == modules_[best]->device().stream;
    if (alike && worth(i) > worth(best)) best = i;
  }
  return static_cast<std::uint8_t>(best);
}

// Our NIC that a HELLO or WELCOME was sent to. Nothing: it was meant for somebody else.
std::optional<std::uint8_t> Engine::Impl::module_called(const wire::Hello& hello) const {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    const auto& ours = modules_[i]->channel(ChannelKind::kCommand).port().address();
    if (!nic::same_port(hello.called, ours)) continue;
    // One that peers do not hear of cannot be named as a rail's.
    return i < nics_told_ ? static_cast<std::uint8_t>(i)
                          : module_for(hello.nics[hello.nic].command);
  }
  return std::nullopt;
}

// The address of the command channel of one of our NICs.
bool Engine::Impl::is_own_port(const nic::Address& address) const {
  return std::any_of(modules_.begin(), modules_.end(), [&](const auto& module) {
    return nic::same_port(module->channel(ChannelKind::kCommand).port().address(), address);
  });
}

// An address that a process of that host names as its own, but that is not its: this host has it,
// too, and whatever is sent there from here stays here (wire.md 5.11).
bool Engine::Impl::leads_here(std::uint64_t host, const nic::Address& address) const {
  if (host == 0 || host_ == 0 || host == host_) return false;
  return std::any_of(modules_.begin(), modules_.begin() + nics_told_, [&](const auto& module) {
    return module->channel(ChannelKind::kCommand).port().is_own(address);
  });
}

// Its NICs keep their numbers, and those that lead here have no address.
void Engine::Impl::forget_own_addresses(std::uint64_t host, std::span<wire::NicInfo> nics) const {
  for (wire::NicInfo& nic : nics) {
    const bool same = nic::same_host(nic.command, nic.data);
    if (leads_here(host, nic.command) || (!same && leads_here(host, nic.data))) {
      nic.command = nic.data = {};
    }
  }
}

// The next NIC to call it from, in turn: one that works, if there is any.
std::optional<std::uint8_t> Engine::Impl::other_module(const Peer& peer) const {
  std::optional<std::uint8_t> found;
  for (std::size_t step = 1; step < nics_told_; ++step) {
    const auto i = static_cast<std::uint8_t>((peer.home.module + step) % nics_told_);
    const bool alike = modules_[i]->device().stream == module_of(peer.home).device().stream;
    if (!alike || (peer.unresolved >> i & 1) != 0 || (found && in_trouble(i))) continue;
    const nic::Port& port = modules_[i]->channel(ChannelKind::kCommand).port();
    if (port.reach(peer.home.remote) == nic::Reach::kNone) continue;
    found = i;
    if (!in_trouble(i)) break;
  }
  return found;
}

// By the next NIC. False if there is no other one: then nothing has changed.
bool Engine::Impl::try_next_nic(Peer& peer) {
  const auto next = other_module(peer);
  if (!next) return false;
  leave_home(peer);
  ++peer.call;
  peer.told = static_cast<std::uint8_t>(nics_told_);
  peer.home.module = *next;
  peer.home.nic = modules_[*next].get();
  start_resolving(peer.home, ChannelKind::kCommand, peer.home.remote);
  if (peer.hello != nullptr) write_hello(peer, false, peer.hello->bytes + wire::kHeaderBytes);
  return true;
}

// A caller is called at another of its addresses; it is answered where it called from.
void Engine::Impl::aim_home(Peer& peer) {
  const nic::Address address = peer.command_address;
  leave_home(peer);
  peer.told = static_cast<std::uint8_t>(nics_told_);
  peer.home.module = module_for(address);
  peer.home.nic = modules_[peer.home.module].get();
  peer.home.remote = address;
  start_resolving(peer.home, ChannelKind::kCommand, address);
}

// Our NIC knows no way to the peer's home address.
void Engine::Impl::handle_no_way(Peer& peer) {
  static_assert(wire::kMaxNics <= 8 * sizeof peer.unresolved);
  if (!peer.introduced && !is_aimed(peer)) return aim_home(peer);  // was to be called elsewhere
  peer.unresolved |= 1u << peer.home.module;
  const bool calling = !peer.called_us && peer.phase < Phase::kConnected;
  if (calling && try_next_nic(peer)) return;
  end_peer(peer, Status::kUnreachable);
}

// Its destination is kept for an answer that goes there, and forgotten otherwise.
void Engine::Impl::leave_home(Peer& peer) {
  Rail& home = peer.home;
  if (Packet* hello = peer.hello) {
    if (hello->in_channel) withdraw(home, *hello);
    if (hello->state == channel::PacketState::kInFlight) home.link.abandon(*hello);
    hello->state = channel::PacketState::kQueued;
  }
  const nic::Destination to = std::exchange(home.command_to, nic::kInvalidDestination);
  home.resolving = home.stale = 0;  // what the NIC answers is for nobody
  if (peer.said != nullptr && !peer.said->elsewhere) {
    peer.said->elsewhere = true;
    peer.said->to = to;
  } else if (to != nic::kInvalidDestination) {
    command(home).port().forget(to);
  }
}

// A HELLO is answered by the NIC that it called, where it came from.
void Engine::Impl::aim_answer(Peer& peer, std::uint8_t module, std::uint8_t from) {
  PendingHello& said = *peer.said;
  if (from >= said.hello.nic_count) return;
  const bool same = said.module == module && said.hello.nic == from;
  if (same && said.elsewhere && (said.to != nic::kInvalidDestination || said.resolving)) return;
  answer_at_home(peer);
  said.module = module;
  said.hello.nic = from;
  if (module >= peer.told) peer.told = static_cast<std::uint8_t>(nics_told_);
  if (peer.home.module == module && nic::same_port(peer.home.remote, said.address())) return;
  said.elsewhere = true;
  if (!said.resolving) resolve_answer(peer);  // one at a time
}

// Where it is to be answered has become a destination, or not; it may mean another place by now.
void Engine::Impl::handle_answer_resolved(Peer& peer, std::size_t module,
                                          const nic::PortEvent& event) {
  PendingHello& said = *peer.said;
  const bool resolved = event.kind == nic::PortEvent::Kind::kResolved;
  said.resolving = false;
  if (said.elsewhere && said.module == module && said.asked == said.hello.nic) {
    said.to = resolved ? event.to : nic::kInvalidDestination;
    return answer(peer);
  }
  if (resolved) modules_[module]->channel(ChannelKind::kCommand).port().forget(event.to);
  if (said.elsewhere && said.to == nic::kInvalidDestination) resolve_answer(peer);
}

// It needs no destination of its own.
void Engine::Impl::answer_at_home(Peer& peer) {
  PendingHello& said = *peer.said;
  const nic::Destination to = std::exchange(said.to, nic::kInvalidDestination);
  if (to != nic::kInvalidDestination) {
    modules_[said.module]->channel(ChannelKind::kCommand).port().forget(to);
  }
  said.elsewhere = false;
}

// The answer has arrived: where it went is the home rail. One that cannot have been sent has not:
// the home rail stays.
void Engine::Impl::adopt_answer(Peer& peer) {
  PendingHello& said = *peer.said;
  if (!said.elsewhere) return;
  if (said.to == nic::kInvalidDestination) return answer_at_home(peer);
  const nic::Destination to = std::exchange(said.to, nic::kInvalidDestination);
  leave_home(peer);
  // What rode with the call leaves by this one; it is a packet like others now.
  if (Packet* hello = std::exchange(peer.hello, nullptr)) peer.home.link.lost().push_back(*hello);
  said.elsewhere = false;
  peer.home.module = said.module;
  peer.home.nic = modules_[said.module].get();
  peer.home.remote = said.address();
  peer.home.command_to = to;
}

// Who is known by another of his addresses: he called us from there. One that has not proved itself
// is called at this one, then.
Peer* Engine::Impl::known_elsewhere(const nic::Address& address) {
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

// That a peer names an address as his own is no proof, unless peers are believed. That one of our
// rails has reached him there is; even if it does not now.
bool Engine::Impl::is_at(const Peer& peer, const nic::Address& address) const {
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

// The NIC has no link: who is called by it is called by another.
void Engine::Impl::leave_calls_by(std::size_t module) {
  peers_.for_each([&](Peer& peer) {
    const bool calling = !peer.called_us && peer.phase < Phase::kConnected;
    if (!calling || peer.home.module != module) return;
    const auto next = other_module(peer);
    if (next && !in_trouble(*next)) try_next_nic(peer);
  });
}

}  // namespace pullman::engine
