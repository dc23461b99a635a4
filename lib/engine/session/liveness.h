// Finds out whether a peer that is not heard is still alive, and the same process (wire.md 5.7).
// Its host may say that nobody listens at its ports, or another process that it is not the one we
// know; both are only believed when the peer itself, asked on every rail, does not answer. The
// questions are bounded, whatever is claimed, by which peer, and how often.
#pragma once

#include <chrono>

#include "engine/session/path_check.h"
#include "engine/session/peer_lifecycle.h"
#include "wire/verdict.h"

namespace pullman::engine {

class Liveness {
 public:
  Liveness(const Config& config, const PeerTable& peers, ReadyPeers& ready,
           PacketReclaimer& reclaimer, Alarms& alarms, PathCheck& check, PeerLifecycle& lifecycle)
      : config_(config),
        peers_(peers),
        ready_(ready),
        reclaimer_(reclaimer),
        alarms_(alarms),
        check_(check),
        lifecycle_(lifecycle) {}

  // Called when a packet is overdue. A process that was killed and restarted on its port drops what
  // we send, and need not call us, so we ask it whether it is the process that we know. We ask
  // seldom: a process that computes does not read what comes.
  void probe_if_silent(Instant now, Peer& peer);
  // A host says that nobody listens at a port of the peer (ICMP). Anybody can say so in its name,
  // so it makes us ask at once, and counts only if it quotes the connection's proof, which nobody
  // off the path knows. (The host of a live peer does not say it; a filter does.)
  void note_refusal(Instant now, const Rail& rail, const nic::PortEvent& event);
  // Handles an unknown-peer reply: another process says that it is not the one that was asked
  // (wire.md 9.10).
  wire::Verdict handle_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                                          const wire::Checked& checked);
  void handle_due(Instant now, Peer& peer);

 private:
  // A peer is asked whether it is the same process after this long a silence, or after 1/kProbePart
  // of peer_timeout if that is less; again when it has been silent twice as long, but at least once
  // per kLongestProbePause.
  static constexpr Duration kProbeAfter = std::chrono::milliseconds(250);
  static constexpr int kProbePart = 4;
  static constexpr Duration kLongestProbePause = std::chrono::minutes(1);

  bool is_silent(Instant now, const Peer& peer) const;
  LivenessProbe& liveness_probe_of(Instant now, Peer& peer);
  void ask_who_it_is(Peer& peer);
  void note_unknown_peer_reply(Instant now, const Rail& rail);
  void ask_whether_it_lives(Instant now, Peer& peer);

  const Config& config_;
  const PeerTable& peers_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  PathCheck& check_;
  PeerLifecycle& lifecycle_;
};

}  // namespace pullman::engine
