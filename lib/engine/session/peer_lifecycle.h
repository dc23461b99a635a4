// A peer's life from when it is known until its slot is free: its states, the alarm that bounds its
// silence, leaving in good order, and its end.
#pragma once

#include <chrono>
#include <deque>
#include <vector>

#include "channel/packet.h"
#include "engine/nics/resolver.h"
#include "engine/peer/alarms.h"
#include "engine/peer/peer_table.h"
#include "engine/send/ack_scheduler.h"
#include "engine/send/packet_reclaimer.h"
#include "engine/session/accept_queue.h"
#include "engine/session/path_check.h"
#include "message/match/matcher_table.h"
#include "message/rx/regions.h"

namespace pullman::engine {

// What a peer's end concerns.
struct PeerEndings {
  channel::PacketPool& packets;
  Resolver& resolver;
  AckScheduler& acks;
  PathCheck& check;
  AcceptQueue& accepts;
  message::MatcherTable& matchers;
  message::Regions& regions;
  Stats& stats;
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

  // Forward only. `reason` is for the log.
  static void set_phase(Peer& peer, Phase phase, const char* reason);

  // --- silence

  // Operations became pending with a peer that had none: from now on silence counts.
  void arm(Instant now, Peer& peer);
  // It has been silent, or has acknowledged nothing, for too long; or it is asked whether it lives.
  void handle_alarm(Instant now, Peer& peer);
  // Once in a while, while nothing ends: a user that waits for a peer that may never answer ought
  // to know. `calling`: nothing has ever come from it.
  void warn_if_unresponsive(Instant now, const Peer& peer, bool calling);
  bool has_pending(const Peer& peer) const;
  // There is no place for another peer, and some may have died while nothing was pending with them:
  // one that does not answer ends as if there had been.
  void ask_idle_peers(Instant now);

  // --- leaving

  // The program wants no more of the peer: what was accepted is delivered, and its handle ends.
  void disconnect(Instant now, PeerId id);
  // The same at once, and it is not told.
  void abandon(PeerId id);
  // Once everything accepted is acked: says BYE, and gives the answer a bounded while.
  void begin_leaving(Instant now, Peer& peer);
  // Of all peers. No operation is accepted from then on.
  void begin_close(Instant now);
  bool closing() const { return closing_; }
  bool all_gone() const;
  // Ends all that have not.
  void abort();

  // --- the end

  // Everything pending with this peer finishes with `why`, once; every packet goes home.
  void end(Peer& peer, Status why);
  // Frees a gone peer's slot; what it sent and nobody received goes with it.
  void discard(Peer& peer);
  // Those that the program has disconnected.
  void discard_left();
  bool any_left() const { return !left_.empty(); }
  // Makes room for another, if there is any to be had of peers that are gone.
  void discard_oldest_gone();
  // All have ended, and so does the engine.
  void discard_all();

 private:
  // How long a BYE is waited for: everything before it has been acked, it is a courtesy.
  static constexpr Duration kFarewell = std::chrono::milliseconds(500);
  // While somebody waits for a peer that is not heard it is asked at least so often whether it
  // lives: until that is overdue itself.
  static constexpr Duration kLook = std::chrono::milliseconds(300);

  // A silence that is worth a word, if it is not that of a program that computes; and how often.
  static constexpr Duration kLongSilence = std::chrono::seconds(10);
  static constexpr Duration kUnresponsiveWarned = std::chrono::seconds(60);

  // The alarm looks in eight times per timeout, so that silence is noticed soon after it is too
  // long.
  Duration alarm_interval() const { return config_.peer_timeout / 8; }
  // Between two looks at a peer with which something is pending.
  Duration look_interval() const;
  // Whether it is the process and not the network that is gone: since the last that was heard of
  // the peer its host has said that nobody listens there. Anybody can say so in the host's name, so
  // it ends nothing: it gives what ends anyway its name.
  bool died(const Peer& peer) const;
  void stop_timers(Rail& rail);

  const Config& config_;
  PeerTable& peers_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  PeerEndings endings_;

  std::deque<PeerId> gone_;   // oldest first: reused when the table is full
  std::vector<PeerId> left_;  // disconnected and gone: freed at the end of the turn
  bool closing_ = false;
  Instant idle_peers_due_ = Instant::min();
  Instant unresponsive_warned_ = Instant() - kUnresponsiveWarned;
};

}  // namespace pullman::engine
