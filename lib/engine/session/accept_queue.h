// Holds the callers that have not proved themselves yet, whose number is bounded (wire.md 5.5), and
// those that have, until the program accepts them.
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
  Instant since{};  // when its time to prove itself began
  std::uint8_t renewals = 0;
};

class AcceptQueue {
 public:
  AcceptQueue(const Config& config, const PeerTable& peers) : config_(config), peers_(peers) {}

  // --- half-open callers, which have not proved themselves

  bool any_half_open() const { return !half_open_.empty(); }
  // Returns the caller that sent this HELLO before; nothing if none has.
  std::optional<PeerId> find_half_open(std::uint64_t epoch, wire::ConnectionId reply_to) const;
  // Returns the half-open callers of one process.
  std::vector<PeerId> half_open_of(std::uint64_t epoch) const;
  // Returns the oldest half-open caller; there must be one.
  PeerId oldest_half_open() const { return half_open_.front().id; }
  void add_half_open(const HalfOpenCaller& caller) { half_open_.push_back(caller); }
  void remove_half_open(const Peer& peer);
  bool half_open_is_full() const { return half_open_.size() >= max_half_open(); }
  // Returns whether the oldest has had time enough to prove itself.
  bool oldest_is_overdue(Instant now) const;
  // Renews the time of a caller that calls again, since it has not had our answer: or it might be
  // dropped just after it was answered, and cannot find that out. Others wait for its place, so it
  // is renewed only a few times while all places are taken. Returns false if the caller gets no
  // answer.
  bool renew(Instant now, PeerId caller);

  // --- proved callers, for the program

  // Queues a peer that has proved itself. If the program never accepts, only peers that still exist
  // are kept.
  void announce(const Peer& peer);
  std::optional<PeerId> accept();

 private:
  // Callers that have not proved themselves may be a quarter of the peers, but at least this many
  // (wire.md 5.5).
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
