// Callers: those that have not proved themselves yet, which are bounded (wire.md 5.5), and those
// that have, until the program accepts them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "engine/peer/peer_table.h"
#include "pullman/config.h"

namespace pullman::engine {

// A caller that has not proved itself.
struct HalfOpenCaller {
  PeerId id;
  std::uint64_t epoch = 0;
  wire::ConnectionId reply_to;
  Instant since{};  // its time counts from then on
  std::uint8_t renewals = 0;
};

class AcceptQueue {
 public:
  AcceptQueue(const Config& config, const PeerTable& peers) : config_(config), peers_(peers) {}

  // --- half open: not proved yet

  bool any_half_open() const { return !half_open_.empty(); }
  // The caller that sent this HELLO before. Nothing: none has.
  std::optional<PeerId> find_half_open(std::uint64_t epoch, wire::ConnectionId reply_to) const;
  // Those of one process.
  std::vector<PeerId> half_open_of(std::uint64_t epoch) const;
  // Of those there are.
  PeerId oldest_half_open() const { return half_open_.front().id; }
  void add_half_open(const HalfOpenCaller& caller) { half_open_.push_back(caller); }
  void remove_half_open(const Peer& peer);
  bool half_open_is_full() const { return half_open_.size() >= max_half_open(); }
  // The oldest has had time enough to prove itself.
  bool oldest_is_overdue(Instant now) const;
  // It calls again, so it has not had the answer: its time begins anew, or it would be dropped when
  // it has just been answered, and it cannot find that out. Others wait for that; so not often
  // where all places are taken. False: then it has no answer.
  bool renew(Instant now, PeerId caller);

  // --- proved, for the program

  // It has proved itself. If the program never accepts, peers that are still known are kept.
  void announce(const Peer& peer);
  std::optional<PeerId> accept();

 private:
  // Callers that have not proved themselves are a quarter of the peers at most, but this many at
  // least (wire.md 5.5).
  static constexpr std::size_t kLeastHalfOpen = 64;

  std::size_t max_half_open() const {
    return std::min(std::max(kLeastHalfOpen, config_.max_peers / 4), config_.max_peers);
  }

  const Config& config_;
  const PeerTable& peers_;
  std::vector<HalfOpenCaller> half_open_;  // oldest first
  std::deque<PeerId> proved_;
};

}  // namespace pullman::engine
