// Passes each expired timer to the component that it belongs to.
#pragma once

#include <chrono>

#include "engine/frames/ack_handler.h"
#include "engine/handshake/handshake.h"
#include "engine/session/liveness.h"

namespace pullman::engine {

class TimerDispatcher {
 public:
  TimerDispatcher(const PeerTable& peers, reliability::Hotel<Packet>& hotel, Alarms& alarms,
                  ReadyPeers& ready, AckScheduler& acks, PacketReclaimer& reclaimer,
                  PathCheck& check, PeerLifecycle& lifecycle, Liveness& liveness,
                  RailManager& rails, NicExchange& exchange, AckHandler& ack_handler,
                  Handshake& handshake)
      : peers_(peers),
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

  // Handles the timers that are due. `only_acks`: only those of ACKs, since received packets that
  // were not read yet may settle the others.
  void expire(Instant now, bool only_acks);
  // Returns when expire() must be called at the latest.
  Instant next_due() const {
    return std::min({hotel_.next_due(), acks_.next_due(), alarms_.next_due()});
  }

 private:
  void handle(Instant now, const Timer& timer);
  void handle_eviction(Instant now, Packet& packet);

  const PeerTable& peers_;
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
};

}  // namespace pullman::engine
