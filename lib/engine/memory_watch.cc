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

// The processes are due at even intervals, each in its turn. Where turns are seldom, since the
// program blocks, several are due in one of them.
void MemoryWatch::poll_processes(Instant now) {
  const auto all = static_cast<std::int64_t>(pairs_->polled());
  behind_ = false;
  if (now - polled_at_ > 2 * kPollInterval) polled_at_ = now - kPollInterval;
  if (all == 0) return;
  const Duration each = kPollInterval / all;
  const std::int64_t due = std::min<std::int64_t>((now - polled_at_) / each, all);
  const std::int64_t count = std::min(due, kPolledPerTurn);
  pairs_->poll_next(static_cast<std::size_t>(count));
  polled_at_ += count * each;
  behind_ = due > count;
}

void MemoryWatch::end_dead_peers(Instant now) {
  peers_.for_each([&](Peer& peer) {
    if (peer.memory->rail->pair().is_alive_there()) return;
    receiver_.drain(now, peer);
    if (peer.phase != Phase::kGone) lifecycle_.end(peer, Status::kPeerDied);
  });
}

}  // namespace pullman::engine
