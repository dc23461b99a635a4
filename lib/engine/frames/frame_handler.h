// Does what the frames of a packet ask for.
#pragma once

#include <cstddef>
#include <span>

#include "engine/frames/blocked_peers.h"
#include "engine/nics/poll_clock.h"
#include "engine/rails/memory_setup.h"
#include "engine/rails/nic_exchange.h"
#include "wire/frame.h"
#include "wire/verdict.h"

namespace pullman::engine {

// The combined effect of a packet's frames.
struct FrameEffect {
  bool refused = false;    // a frame is beyond what was granted: the packet counts as lost
  bool redundant = false;  // all of its message bytes had come before
  bool urgent = false;     // it asks for an ACK at once
  bool bye = false;
};

class FrameHandler {
 public:
  FrameHandler(const PollClock& clock, ReadyPeers& ready, PacketReclaimer& reclaimer,
               PeerLifecycle& lifecycle, RailManager& rails, NicExchange& exchange,
               MemorySetup& memory, BlockedPeers& blocked)
      : clock_(clock),
        ready_(ready),
        reclaimer_(reclaimer),
        lifecycle_(lifecycle),
        rails_(rails),
        exchange_(exchange),
        memory_(memory),
        blocked_(blocked) {}

  // Acts on the frames of a sequenced packet. All of them are idempotent, so a packet of which one
  // is refused is simply not noted: it will be sent again.
  wire::Verdict handle(Instant now, Rail& rail, const wire::PacketHeader& header,
                       wire::FrameList& frames);
  // Acts on all frames of the list, or up to the first one that is refused.
  FrameEffect take(Peer& peer, wire::FrameList& frames) {
    return frames.is_one_message() ? act_on_message(peer, frames.front()) : act_on(peer, frames);
  }
  FrameEffect act_on(Peer& peer, wire::FrameList& frames);
  // Called when frames were acted on: the peer may have to be told something, or owe us more.
  void follow_up(Instant now, Peer& peer);

  // Returns whether a packet brings data of a message that had not arrived whole when our BYE was
  // written: BYE says so, and that must stay true. `body` is the packet's, and empty for a bulk
  // packet.
  static bool brings_news(const Peer& peer, const wire::FrameList& frames,
                          std::span<const std::byte> body);

 private:
  static FrameEffect act_on_message(Peer& peer, const wire::Frame& frame);
  void handle_bye(Peer& peer);

  const PollClock& clock_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  PeerLifecycle& lifecycle_;
  RailManager& rails_;
  NicExchange& exchange_;
  MemorySetup& memory_;
  BlockedPeers& blocked_;

  wire::Frame bye_;  // of the packet that is being received, if it has one
};

}  // namespace pullman::engine
