// Receives from the channels that are due. Each packet is parsed, validated and passed to its
// handler (wire.md 1.3); runs of chunks are handled together (receive_run.cc).
#pragma once

#include <cstddef>
#include <span>

#include "engine/frames/ack_handler.h"
#include "engine/handshake/handshake.h"
#include "engine/handshake/protection_mismatch.h"
#include "engine/memory_receiver.h"
#include "engine/receive_backpressure.h"
#include "engine/security/packet_protection.h"
#include "engine/session/liveness.h"
#include "engine/session/stateless_replies.h"
#include "wire/run.h"

namespace pullman::engine {

class Receiver {
 public:
  // `epoch` names this engine; `protection` is null if packets are not protected.
  Receiver(const Config& config, std::uint64_t epoch, const PeerTable& peers, NicTable& nics,
           ChannelPoller& poller, CreditAllocator& credits, PollClock& clock, ReadyPeers& ready,
           AckScheduler& acks, PathCheck& check, StatelessReplies& replies,
           PeerLifecycle& lifecycle, Liveness& liveness, FrameHandler& frame_handler,
           AckHandler& ack_handler, Handshake& handshake, MemoryReceiver& memory,
           PacketProtection* protection, const message::InboxCounters& inbox_counters, Stats& stats)
      : checksum_(config.checksum),
        peers_(peers),
        stats_(stats),
        inbox_counters_(inbox_counters),
        ack_handler_(ack_handler),
        acks_(acks),
        frame_handler_(frame_handler),
        credits_(credits),
        clock_(clock),
        ready_(ready),
        nics_(nics),
        poller_(poller),
        protection_(protection),
        epoch_(epoch),
        check_(check),
        replies_(replies),
        mismatch_(protection, peers, nics, replies, lifecycle),
        lifecycle_(lifecycle),
        liveness_(liveness),
        handshake_(handshake),
        memory_(memory) {}

  // Returns the number of packets received, dropped ones included.
  std::size_t receive_all(Instant now);
  // Returns whether timers wait in this turn because received packets are left for a later one, or
  // were left by the last: these may acknowledge packets that look overdue.
  bool holds_timers(bool had_deferred) {
    return backpressure_.holds_timers(had_deferred || poller_.has_deferred());
  }

 private:
  std::size_t take_batch(Instant now, std::size_t place, std::span<const nic::Incoming> batch);
  wire::Verdict handle_datagram(Instant now, std::span<const std::byte> datagram,
                                wire::PacketHeader& header);
  void handle_drop(Instant now, wire::Verdict why, std::span<const std::byte> datagram);
  wire::Verdict open(std::span<const std::byte> datagram, wire::PacketHeader& header,
                     std::uint8_t& key);
  bool is_replay(Rail& rail, const wire::PacketHeader& header);
  bool may_speak(const Peer& peer) const;
  wire::Verdict handle_control(Instant now, Rail& rail, const wire::PacketHeader& header,
                               std::span<const std::byte> body);
  wire::Verdict handle_sequenced(Instant now, Rail& rail, const wire::PacketHeader& header,
                                 std::span<const std::byte> body);
  wire::Verdict handle_late(Instant now, Rail& rail, const wire::PacketHeader& header,
                            std::span<const std::byte> body);
  wire::Verdict handle_check(Instant now, Rail& rail, const wire::PacketHeader& header);
  wire::Verdict handle_unknown(Instant now, const wire::PacketHeader& header, std::uint8_t key);
  bool came_by_another_nic(std::span<const std::byte> part) const;

  // receive_run.cc
  std::size_t take_run(Instant now, const wire::PacketHeader& first,
                       std::span<const nic::Incoming> batch);
  bool in_order_behind(const Rail& rail, const wire::PacketHeader& header) const;
  std::span<const std::byte> open_next(wire::ChunkRun& run, Rail& rail,
                                       std::span<const std::byte> datagram, std::uint64_t most);

  // How the datagram that is being handled was received.
  Came came_ = Came::kBehindDeferred;
  const bool checksum_;
  std::size_t slot_ = 0;   // the NIC of that datagram
  std::size_t place_ = 0;  // the place of its channel
  std::span<const nic::Incoming> batch_;
  wire::FrameList frames_;

  // The members that every packet needs come first, then those that few packets need.
  const PeerTable& peers_;
  Stats& stats_;
  const message::InboxCounters& inbox_counters_;
  AckHandler& ack_handler_;
  AckScheduler& acks_;
  FrameHandler& frame_handler_;
  CreditAllocator& credits_;
  PollClock& clock_;
  ReadyPeers& ready_;
  NicTable& nics_;
  ChannelPoller& poller_;
  PacketProtection* const protection_;

  const std::uint64_t epoch_;
  PathCheck& check_;
  StatelessReplies& replies_;
  ProtectionMismatch mismatch_;
  const PeerLifecycle& lifecycle_;
  Liveness& liveness_;
  Handshake& handshake_;
  MemoryReceiver& memory_;
  ReceiveBackpressure backpressure_;
};

}  // namespace pullman::engine
