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
  const std::lock_guard locked(changing_);
  peers_[rank].peer = peer;
  ranks_.insert_or_assign(peer, rank);
}

std::optional<Roster::Known> Roster::find(unsigned rank) {
  const std::lock_guard locked(changing_);
  const auto found = peers_.find(rank);
  return found == peers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<unsigned> Roster::find(PeerId peer) {
  const std::lock_guard locked(changing_);
  const auto found = ranks_.find(peer);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

// A peer that is known as one process is not believed to be another. Nor is a peer believed that
// claims the rank of a process that is connected already, or of this one.
void Roster::note_introductions() {
  const std::lock_guard locked(noting_);
  note_those_there();
}

void Roster::note_those_there() {
  constexpr unsigned kAtOnce = 64;  // more come with the next call
  for (unsigned i = 0; i < kAtOnce; ++i) {
    const auto letter = mail_.next(Kind::kIntroduction);
    if (!letter) return;
    if (letter->bytes.size() != sizeof(std::uint32_t) || find(letter->from)) continue;
    const unsigned rank = wire::load32(letter->bytes.data());
    if (rank >= place_.size || rank == place_.rank) continue;
    const auto known = find(rank);
    if (!known || !is_alive(known->peer)) remember(rank, letter->from);
  }
}

PeerId Roster::peer(unsigned rank) {
  if (rank >= place_.size) {
    throw Error(Status::kInvalidArgument,
                fmt::format("there is no {}: {} processes", name_of(rank), place_.size));
  }
  note_introductions();
  const auto known = find(rank);
  if (known && is_alive(known->peer)) return known->peer;
  const std::size_t calls = known ? known->calls : 0;
  const PeerId there = call(rank, calls);
  remember(rank, there);
  const std::lock_guard locked(changing_);
  peers_[rank].calls = calls + 1;
  return there;
}

std::optional<PeerId> Roster::known(unsigned rank) {
  note_introductions();
  const auto found = find(rank);
  return found ? std::optional(found->peer) : std::nullopt;
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
  return find(peer);
}

// A thread that notes introductions may call back, and then wait for the caller of this: so this
// does not wait for it.
std::vector<std::pair<unsigned, PeerId>> Roster::connected() {
  if (const std::unique_lock locked(noting_, std::try_to_lock); locked) note_those_there();
  std::vector<std::pair<unsigned, PeerId>> all;
  {
    const std::lock_guard locked(changing_);
    for (const auto& [rank, known] : peers_) all.emplace_back(rank, known.peer);
  }
  std::erase_if(all, [this](const auto& one) { return !is_alive(one.second); });
  return all;
}

std::optional<unsigned> Roster::rank_of_latest(PeerId peer) {
  const auto rank = find(peer);
  const auto known = rank ? find(*rank) : std::nullopt;
  return known && known->peer == peer ? rank : std::nullopt;
}

}  // namespace pullman::world
