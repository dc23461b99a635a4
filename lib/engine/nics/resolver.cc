#include "engine/nics/resolver.h"

namespace pullman::engine {
namespace {

// Encodes the peer, the rail, and the channel that will use the destination.
std::uint64_t cookie_of(PeerId id, std::size_t rail, ChannelKind kind) {
  return std::uint64_t{id.index} << 32 | (id.generation & 0xFFFFFF) << 8 | rail << 1 |
         static_cast<std::uint64_t>(kind);
}
std::size_t rail_in(std::uint64_t cookie) {
  return (cookie & 0xFF) >> 1;
}
// Returns what stands in place of a rail's number for the answer to a HELLO. It changes with each
// address that is resolved for an answer.
std::size_t number_of_answer(const Peer& peer) {
  return wire::kMaxRails + peer.aims % (128 - wire::kMaxRails);
}

}  // namespace

void Resolver::resolve(Rail& rail, ChannelKind kind, const nic::Address& address) {
  rail.resolving |= 3u & bit_of(kind);
  note_asked(rail.module);
  rail.nic->channel(kind).port().resolve(address, cookie_of(rail.peer.id, rail.number, kind));
}

void Resolver::resolve_both(Rail& rail) {
  const wire::NicInfo& nic = rail.peer.rails->theirs[rail.there];
  const auto ask = [&](ChannelKind kind, nic::Destination known, const nic::Address& address) {
    if (known != nic::kInvalidDestination || rail.is_resolving(kind)) return;
    resolve(rail, kind, address);
  };
  ask(ChannelKind::kCommand, rail.command_to, nic.command);
  ask(ChannelKind::kData, rail.data_to, nic.data);
}

void Resolver::resolve_answer(Peer& peer) {
  PendingHello& said = *peer.said;
  ++peer.aims;
  said.resolving = true;
  said.asked = said.hello.nic;
  note_asked(said.module);
  nics_.channel(said.module, ChannelKind::kCommand)
      .port()
      .resolve(said.address(), cookie_of(peer.id, number_of_answer(peer), ChannelKind::kCommand));
}

void Resolver::resolve_stateless_reply(std::size_t slot, const nic::Address& address) {
  note_asked(slot);
  nics_.channel(slot, ChannelKind::kCommand).port().resolve(address, kStatelessReplyCookie);
}

Resolver::Purpose Resolver::purpose_of(ChannelKind kind, std::uint64_t cookie) const {
  const auto index = static_cast<std::uint32_t>(cookie >> 32);
  Peer* peer = index < peers_.slots() ? peers_.at(index) : nullptr;
  const std::size_t number = rail_in(cookie);
  const bool current =
      peer != nullptr && peer->phase != Phase::kGone && cookie_of(peer->id, number, kind) == cookie;
  if (!current) return {};
  const bool resolving = peer->said != nullptr && peer->said->resolving;
  return {.peer = peer,
          .rail = number < wire::kMaxRails ? peer->rail(number) : nullptr,
          .is_answer = resolving && number == number_of_answer(*peer)};
}

bool Resolver::take_answer(Rail& rail, ChannelKind kind) {
  const bool current = (rail.stale & bit_of(kind)) == 0;
  rail.resolving &= 3u & ~bit_of(kind);
  rail.stale &= 3u & ~bit_of(kind);
  return current;
}

void Resolver::release(std::size_t slot, ChannelKind kind, nic::Destination& to) const {
  if (to != nic::kInvalidDestination) nics_.channel(slot, kind).port().forget(to);
  to = nic::kInvalidDestination;
}

void Resolver::release(Rail& rail) const {
  release(rail.module, ChannelKind::kCommand, rail.command_to);
  release(rail.module, ChannelKind::kData, rail.data_to);
}

}  // namespace pullman::engine
