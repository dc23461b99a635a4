// Handles ACKs that come. It returns what they deliver to the pool, makes the peer ready if they
// prove packets lost or make room for more, and tells the rail that it has answered.
#pragma once

#include <cstdint>

#include "engine/rails/rail_manager.h"
#include "engine/session/path_sizer.h"
#include "telemetry/rows.h"
#include "wire/verdict.h"

namespace pullman::engine {

// How a datagram came: alone, in a batch, or by a channel whose packets had been left for a later
// turn.
enum class Came : std::uint8_t { kAlone, kTogether, kBehindDeferred };

struct ReceivedAck {
  const wire::PacketHeader& header;
  std::size_t module;  // the NIC it came through
  const wire::Frame* sack = nullptr;
};

// Returns whether a packet that came through that NIC took the way by which the other end sends on
// this rail.
inline bool came_by(const Rail& rail, std::size_t module) {
  return module == (rail.peer.rails == nullptr ? rail.module : upkeep_of(rail).here);
}

class AckHandler {
 public:
  AckHandler(ReadyPeers& ready, AckScheduler& acks, PacketReclaimer& reclaimer, Alarms& alarms,
             PeerLifecycle& lifecycle, PathSizer& path_sizer, RailManager& rails)
      : ready_(ready),
        acks_(acks),
        reclaimer_(reclaimer),
        alarms_(alarms),
        lifecycle_(lifecycle),
        path_sizer_(path_sizer),
        rails_(rails) {}

  wire::Verdict handle(Instant now, Rail& rail, const ReceivedAck& ack,
                       reliability::AckTiming timing);
  // Settles what the link has found to be delivered: releases the packets, arms the loss timer, and
  // goes on with the end of a peer that has nothing left to deliver.
  void collect(Instant now, Rail& rail);

  // Returns whether the ACK in a packet, and the ACK for it, may wait until the program has had its
  // turn with the message. They are a good part of what receiving costs; nobody waits for the
  // former, and the latter is piggybacked on the answer if there is one. A packet of a longer
  // message may defer them only if nothing waits to be sent, and none may behind packets that were
  // left from the turn before. The receiver undoes it if no message was complete.
  bool may_defer(const Rail& rail, const wire::PacketHeader& header, Came came,
                 bool is_one_message) const;
  void handle_deferred(Instant now) {
    if (acks_.has_deferred()) take_deferred(now);
  }

  // Returns the smoothed RTT of the rail whose ACK last brought something; 0 before the first
  // sample.
  std::uint64_t rtt_ns() const { return rtt_ns_; }
  // Returns how many ACKs had which round trip, of all peers.
  const telemetry::RttHistogram& rtt_histogram() const { return rtt_histogram_; }

 private:
  void take_deferred(Instant now);

  ReadyPeers& ready_;
  AckScheduler& acks_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  PeerLifecycle& lifecycle_;
  PathSizer& path_sizer_;
  RailManager& rails_;
  std::uint64_t rtt_ns_ = 0;
  telemetry::RttHistogram rtt_histogram_{};
};

}  // namespace pullman::engine
