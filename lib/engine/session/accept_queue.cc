#include "engine/session/accept_queue.h"

namespace pullman::engine {

std::optional<PeerId> AcceptQueue::find_half_open(std::uint64_t epoch,
                                                  wire::ConnectionId reply_to) const {
  for (const HalfOpenCaller& caller : half_open_) {
    if (caller.epoch == epoch && caller.reply_to == reply_to) return caller.id;
  }
  return std::nullopt;
}

std::vector<PeerId> AcceptQueue::half_open_of(std::uint64_t epoch) const {
  std::vector<PeerId> found;
  for (const HalfOpenCaller& caller : half_open_) {
    if (caller.epoch == epoch) found.push_back(caller.id);
  }
  return found;
}

void AcceptQueue::remove_half_open(const Peer& peer) {
  std::erase_if(half_open_, [&](const HalfOpenCaller& caller) { return caller.id == peer.id; });
}

bool AcceptQueue::oldest_is_overdue(Instant now) const {
  return !half_open_.empty() && now - half_open_.front().since >= 2 * config_.pto_initial;
}

// The caller moves to the end, so that the list stays in order of time.
bool AcceptQueue::renew(Instant now, PeerId id) {
  constexpr std::uint8_t kMost = 3;
  const auto caller = std::find_if(half_open_.begin(), half_open_.end(),
                                   [&](const HalfOpenCaller& one) { return one.id == id; });
  if (now - caller->since < config_.pto_initial / 2) return true;
  if (caller->renewals == kMost && half_open_is_full()) return false;
  caller->since = now;
  if (caller->renewals < kMost) ++caller->renewals;
  std::rotate(caller, caller + 1, half_open_.end());
  return true;
}

void AcceptQueue::announce(const Peer& peer) {
  if (proved_.size() >= config_.max_peers) {
    std::erase_if(proved_, [this](PeerId id) { return peers_.find(id) == nullptr; });
  }
  proved_.push_back(peer.id);
}

std::optional<PeerId> AcceptQueue::accept() {
  while (!proved_.empty()) {
    const PeerId id = proved_.front();
    proved_.pop_front();
    if (peers_.find(id) != nullptr) return id;
  }
  return std::nullopt;
}

}  // namespace pullman::engine
