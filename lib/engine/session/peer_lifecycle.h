// Manages a peer's life from its creation until its slot is free: its phases, the alarm that bounds
// its silence, the orderly end of a connection, and the end of the peer.
#pragma once

#include <chrono>
#include <deque>
#include <vector>

#include "channel/packet.h"
#include "engine/nics/resolver.h"
#include "engine/peer/alarms.h"
#include "engine/peer/memory_peers.h"
#include "engine/peer/peer_table.h"
#include "engine/send/ack_scheduler.h"
#include "engine/send/packet_reclaimer.h"
#include "engine/session/accept_queue.h"
#include "engine/session/path_check.h"
#include "engine/session/peer_failures.h"
#include "message/match/matcher_table.h"
#include "message/rx/regions.h"

namespace pullman::engine {

// The components that a peer's end concerns.
struct PeerEndings {
  channel::PacketPool& packets;
  Resolver& resolver;
  AckScheduler& acks;
  PathCheck& check;
  AcceptQueue& accepts;
  message::MatcherTable& matchers;
  message::Regions& regions;
  MemoryPeers& memory_peers;
  Stats& stats;
  EndedTotals& ended;
};

class PeerLifecycle {
 public:
  PeerLifecycle(const Config& config, PeerTable& peers, ReadyPeers& ready,
                PacketReclaimer& reclaimer, Alarms& alarms, const PeerEndings& endings)
      : config_(config),
        peers_(peers),
        ready_(ready),
        reclaimer_(reclaimer),
        alarms_(alarms),
        endings_(endings) {}

  // Moves the peer to a later phase. `reason` is for the log.
  static void set_phase(Peer& peer, Phase phase, const char* reason);

  // --- silence

  // Arms the alarm, since operations became pending with a peer that had none: from now on its
  // silence counts.
  void arm(Instant now, Peer& peer);
  // Ends a peer that has been silent, or has acknowledged nothing, for too long; otherwise probes
  // whether it is alive.
  void handle_alarm(Instant now, Peer& peer);
  // Warns once in a while about a peer that is unresponsive but does not end: a user that waits for
  // it ought to know. `calling`: nothing has ever come from it.
  void warn_if_unresponsive(Instant now, const Peer& peer, bool calling);
  bool has_pending(const Peer& peer) const;
  // Probes idle peers when there is no place for another peer: some may have died while nothing was
  // pending with them. One that does not answer ends as if there had been.
  void ask_idle_peers(Instant now);

  // --- leaving

  // Disconnects a peer for the program: what was accepted is delivered, then its handle ends.
  void disconnect(Instant now, PeerId id);
  // Does the same at once, and does not tell the peer.
  void abandon(PeerId id);
  // Sends BYE once everything accepted is acked, and waits for its ACK for a bounded time.
  void begin_leaving(Instant now, Peer& peer);
  // Begins to leave all peers. No operation is accepted from then on.
  void begin_close(Instant now);
  bool closing() const { return closing_; }
  bool all_gone() const;
  // Ends all peers that have not ended.
  void abort();

  // --- the end

  // Ends a peer: everything pending with it finishes with `why`, once, and every packet returns to
  // the pool.
  void end(Peer& peer, Status why);
  const PeerFailures& failures() const { return failures_; }
  // Frees a gone peer's slot; messages from it that nobody received are freed, too.
  void discard(Peer& peer);
  // Discards the gone peers that the program has disconnected.
  void discard_left();
  bool any_left() const { return !left_.empty(); }
  // Makes room for another peer if the table is full and peers in it are gone.
  void discard_oldest_gone();
  // Discards all peers, which have ended, when the engine ends.
  void discard_all();

 private:
  // How long the ACK of a BYE is waited for. Everything before it has been acked, so it is a
  // courtesy.
  static constexpr Duration kFarewell = std::chrono::milliseconds(500);
  // While operations are pending with a peer that is not heard, it is probed at least this often,
  // until a probe is overdue itself.
  static constexpr Duration kLook = std::chrono::milliseconds(300);

  // A silence that is worth a warning, unless the peer may be computing; and how often to warn.
  static constexpr Duration kLongSilence = std::chrono::seconds(10);
  static constexpr Duration kUnresponsiveWarned = std::chrono::seconds(60);

  // The alarm expires eight times per timeout, so that silence is noticed soon after it is too
  // long.
  Duration alarm_interval() const { return config_.peer_timeout / 8; }
  // The time between two alarms of a peer with which something is pending.
  Duration look_interval() const;
  // Returns whether the process is gone, and not the network: its host has said that nobody listens
  // there since the peer was last heard. Anybody can say so in the host's name, so it ends no peer:
  // it only gives the status of one that ends anyway.
  bool died(const Peer& peer) const;
  void leave_memory(Peer& peer);
  void stop_timers(Rail& rail);

  const Config& config_;
  PeerTable& peers_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  PeerEndings endings_;

  PeerFailures failures_;
  std::deque<PeerId> gone_;   // oldest first; reused when the table is full
  std::vector<PeerId> left_;  // disconnected and gone; freed at the end of the turn
  bool closing_ = false;
  Instant idle_peers_due_ = Instant::min();
  Instant unresponsive_warned_ = Instant() - kUnresponsiveWarned;
};

}  // namespace pullman::engine
