#include "engine/session/accept_queue.h"

namespace pullman::engine {

void AcceptQueue::remove_half_open(const Peer& peer) {
  std::erase_if(half_open_, [&](const HalfOpenCaller& caller) { return caller.id == peer.id; });
}

bool AcceptQueue::oldest_is_overdue(Instant now) const {
  return !half_open_.empty() && now - half_open_.front().since >= 2 * config_.rto_initial;
}

// The list stays in order of time.
bool AcceptQueue::renew(Instant now, const HalfOpenCaller& caller) {
  constexpr std::uint8_t kMost = 3;
  if (now - caller.since < config_.rto_initial / 2) return true;
  if (caller.renewals == kMost && half_open_is_full()) return false;
  HalfOpenCaller renewed = caller;
  renewed.since = now;
  if (renewed.renewals < kMost) ++renewed.renewals;
  half_open_.erase(half_open_.begin() + (&caller - half_open_.data()));
  half_open_.push_back(renewed);
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
