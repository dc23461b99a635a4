#include "world/roster.h"

#include <fmt/format.h>

#include <utility>

#include "pullman/status.h"
#include "wire/bytes.h"
#include "world/names.h"

namespace pullman::world {

bool Roster::is_alive(PeerId peer) const {
  const PeerState state = context_.peer_state(peer);
  return state == PeerState::kConnecting || state == PeerState::kConnected;
}

void Roster::remember(unsigned rank, PeerId peer) {
  peers_[rank].peer = peer;
  ranks_.insert_or_assign(peer, rank);
}

// A peer that is known as one process is not believed to be another. Nor is a peer believed that
// claims the rank of a process that is connected already, or of this one.
void Roster::note_introductions() {
  constexpr unsigned kAtOnce = 64;  // more come with the next call
  for (unsigned i = 0; i < kAtOnce; ++i) {
    const auto letter = mail_.next(Kind::kIntroduction);
    if (!letter) return;
    if (letter->bytes.size() != sizeof(std::uint32_t) || ranks_.contains(letter->from)) continue;
    const unsigned rank = wire::load32(letter->bytes.data());
    if (rank >= place_.size || rank == place_.rank) continue;
    const auto known = peers_.find(rank);
    if (known == peers_.end() || !is_alive(known->second.peer)) remember(rank, letter->from);
  }
}

PeerId Roster::peer(unsigned rank) {
  if (rank >= place_.size) {
    throw Error(Status::kInvalidArgument,
                fmt::format("there is no {}: {} processes", name_of(rank), place_.size));
  }
  note_introductions();
  const auto known = peers_.find(rank);
  if (known != peers_.end() && is_alive(known->second.peer)) return known->second.peer;
  const std::size_t calls = known == peers_.end() ? 0 : known->second.calls;
  const PeerId there = call(rank, calls);
  remember(rank, there);
  peers_[rank].calls = calls + 1;
  return there;
}

std::optional<PeerId> Roster::known(unsigned rank) {
  note_introductions();
  const auto found = peers_.find(rank);
  return found == peers_.end() ? std::nullopt : std::optional(found->second.peer);
}

// The address that our NICs reach best is tried first, then each of them in turn.
PeerId Roster::call(unsigned rank, std::size_t calls) {
  const std::vector<std::string> addresses = addresses_of_(rank);
  const PeerId there = calls == 0 || addresses.empty()
                           ? context_.connect(addresses)
                           : context_.connect(addresses[calls % addresses.size()]);
  if (rank == place_.rank) return there;
  Bytes letter(sizeof(std::uint32_t));
  wire::store32(letter.data(), place_.rank);
  mail_.send(there, Kind::kIntroduction, 0, std::move(letter), name_of(rank));
  return there;
}

std::optional<unsigned> Roster::rank_of(PeerId peer) {
  note_introductions();
  const auto found = ranks_.find(peer);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace pullman::world
