// Time passes: packets whose timeout is over, ACKs that have waited, peers that are silent, and
// what else is due.
#pragma once

#include <chrono>

#include "engine/frames/ack_handler.h"
#include "engine/handshake/handshake.h"
#include "engine/session/liveness.h"

namespace pullman::engine {

class TimerDispatcher {
 public:
  TimerDispatcher(const Config& config, PeerTable& peers, reliability::Hotel<Packet>& hotel,
                  Alarms& alarms, ReadyPeers& ready, AckScheduler& acks, PacketReclaimer& reclaimer,
                  PathCheck& check, PeerLifecycle& lifecycle, Liveness& liveness,
                  RailManager& rails, NicExchange& exchange, AckHandler& ack_handler,
                  Handshake& handshake)
      : config_(config),
        peers_(peers),
        hotel_(hotel),
        alarms_(alarms),
        ready_(ready),
        acks_(acks),
        reclaimer_(reclaimer),
        check_(check),
        lifecycle_(lifecycle),
        liveness_(liveness),
        rails_(rails),
        exchange_(exchange),
        ack_handler_(ack_handler),
        handshake_(handshake) {}

  // Does what is due. `only_acks`: what has come and was not looked at may say that the rest is
  // not.
  void expire(Instant now, bool only_acks);
  // When to, at the latest.
  Instant next_due() const {
    return std::min({hotel_.next_due(), acks_.next_due(), alarms_.next_due()});
  }

 private:
  // A call unanswered so often, and for so long, leaves by another NIC. Not sooner: a peer that is
  // known by the address of its second NIC is called by that of its first all the same.
  static constexpr std::uint64_t kTimeoutsBeforeOther = 2;
  static constexpr Duration kTimeBeforeOther = std::chrono::milliseconds(250);
  // A silence that is worth a word, if it is not that of a program that computes; and how often.
  static constexpr Duration kLongSilence = std::chrono::seconds(10);
  static constexpr Duration kUnresponsiveWarned = std::chrono::seconds(60);

  void handle(Instant now, const Timer& timer);
  void handle_eviction(Instant now, Packet& packet);
  void handle_alarm(Instant now, Peer& peer);
  void warn_peer_unresponsive(Instant now, const Peer& peer, bool calling);

  const Config& config_;
  PeerTable& peers_;
  reliability::Hotel<Packet>& hotel_;
  Alarms& alarms_;
  ReadyPeers& ready_;
  AckScheduler& acks_;
  PacketReclaimer& reclaimer_;
  PathCheck& check_;
  PeerLifecycle& lifecycle_;
  Liveness& liveness_;
  RailManager& rails_;
  NicExchange& exchange_;
  AckHandler& ack_handler_;
  Handshake& handshake_;
  Instant unresponsive_warned_ = Instant() - kUnresponsiveWarned;
};

}  // namespace pullman::engine
