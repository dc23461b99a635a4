#include "engine/memory_watch.h"

#include <algorithm>

namespace pullman::engine {

// What a process has sent before it ended is received first, its BYE above all: until a turn that
// polls every channel receives nothing, or for some turns, since others may send all the time.
void MemoryWatch::look_now(Instant now, std::size_t received) {
  if (some_ended_ && (received == 0 || ++turns_ == kMaxTurns)) {
    some_ended_ = false;
    turns_ = 0;
    end_dead_peers(now);
  }
  due_ = now + kPause;
  poll_processes(now);
  if (!pairs_->any_ended()) return;
  some_ended_ = true;
  due_ = Instant::min();
  poller_.poll_all_next_turn();
}

// A program that blocks makes turns seldom, and each of them polls the more.
void MemoryWatch::poll_processes(Instant now) {
  const std::size_t all = pairs_->polled();
  const Duration passed = std::min(now - polled_at_, kPollInterval);
  const auto count = static_cast<std::size_t>(all * passed / kPollInterval);
  if (all != 0 && count == 0) return;
  pairs_->poll_next(count);
  polled_at_ = now;
}

void MemoryWatch::end_dead_peers(Instant now) {
  peers_.for_each([&](Peer& peer) {
    if (peer.memory->rail->pair().is_alive_there()) return;
    receiver_.drain(now, peer);
    if (peer.phase != Phase::kGone) lifecycle_.end(peer, Status::kPeerDied);
  });
}

}  // namespace pullman::engine
