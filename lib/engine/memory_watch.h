// Notices that the process of a peer on this host has ended, and ends the peer, with all that is
// pending with it: the kernel tells at once, or when it is asked, while by a NIC the peer would
// have to be asked, and time to pass.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "engine/memory_receiver.h"

namespace pullman::engine {

class MemoryWatch {
 public:
  MemoryWatch(shm::Pairs* pairs, MemoryPeers& peers, ChannelPoller& poller,
              PeerLifecycle& lifecycle, MemoryReceiver& receiver)
      : pairs_(pairs), peers_(peers), poller_(poller), lifecycle_(lifecycle), receiver_(receiver) {}

  // Called when a turn has received that many packets and records.
  void look(Instant now, std::size_t received) {
    if (now >= due_) look_now(now, received);
  }
  // The program is about to block: the next turn looks.
  void prepare_to_block() { due_ = Instant::min(); }
  // Returns whether the next turn has something to do.
  bool has_work() const { return some_ended_ && !peers_.empty(); }
  // Returns when processes are to be polled, at the latest; kNever if none are.
  Instant next_due() const {
    if (peers_.empty() || pairs_->polled() == 0) return kNever;
    return behind_ ? Instant::min() : polled_at_ + kPollInterval;
  }

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(1);
  static constexpr unsigned kMaxTurns = 64;
  // Each process that must be polled is polled once in this time, and a few of them at most in one
  // turn, since each takes several microseconds.
  static constexpr Duration kPollInterval = std::chrono::milliseconds(250);
  static constexpr std::int64_t kPolledPerTurn = 8;

  void poll_processes(Instant now);
  void look_now(Instant now, std::size_t received);
  void end_dead_peers(Instant now);

  shm::Pairs* const pairs_;  // null: there are no such peers
  MemoryPeers& peers_;
  ChannelPoller& poller_;
  PeerLifecycle& lifecycle_;
  MemoryReceiver& receiver_;

  Instant due_{};
  Instant polled_at_{};  // until then all that were due have been polled
  bool behind_ = false;  // some are due that were too many for one turn
  bool some_ended_ = false;
  unsigned turns_ = 0;  // since that was heard
};

}  // namespace pullman::engine
