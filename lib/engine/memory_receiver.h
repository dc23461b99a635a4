// Polls the memory that is shared with peers on this host: handles the records that they have
// written, and takes back the packets that they have read.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/frames/frame_handler.h"
#include "engine/rails/memory_setup.h"
#include "engine/receive_backpressure.h"

namespace pullman::engine {

class MemoryReceiver {
 public:
  MemoryReceiver(MemoryPeers& peers, ChannelPoller& poller, ReadyPeers& ready,
                 PacketReclaimer& reclaimer, PeerLifecycle& lifecycle, MemorySetup& setup,
                 FrameHandler& frame_handler, const message::InboxCounters& inbox_counters,
                 Stats& stats)
      : peers_(peers),
        poller_(poller),
        ready_(ready),
        reclaimer_(reclaimer),
        lifecycle_(lifecycle),
        setup_(setup),
        frame_handler_(frame_handler),
        inbox_counters_(inbox_counters),
        stats_(stats) {}

  // Returns the number of records handled.
  std::size_t receive_all(Instant now);
  // Handles all that the peer has written, before something that came by a NIC.
  void drain(Instant now, Peer& peer);
  // Returns whether records were left for the next turn.
  bool has_deferred() const { return deferred_ && !peers_.empty(); }
  // Returns when a record for which there was no memory is to be handled again, or when a process
  // that is about to block is to look again; kNever if neither is.
  Instant next_due() const { return peers_.empty() ? kNever : std::min(retry_at_, look_again_at_); }

  // Says in the memory that this process is about to block, which holds until there is something to
  // handle. Returns false if it must not, since there is. Called behind receive_all(), before
  // next_due().
  bool prepare_to_block();

 private:
  // At most this many records of one peer are handled in a turn, and references until they had this
  // many bytes.
  static constexpr std::size_t kRecordsPerTurn = 64;
  static constexpr std::size_t kReferredPerTurn = std::size_t{1} << 20;
  // The pause before a record that could not be handled is tried again, if nothing else makes a
  // turn; and how long it may remain so before the memory is left.
  static constexpr Duration kRetry = std::chrono::milliseconds(1);
  static constexpr Duration kMaxStuck = std::chrono::milliseconds(20);

  enum class Extent : std::uint8_t { kShareOfTurn, kAll };

  std::size_t receive(Instant now, Peer& peer, Extent extent);
  bool handle(Peer& peer, std::span<const std::byte> record);
  bool handle_reference(Peer& peer, std::span<const std::byte> record);
  void collect(Instant now, Peer& peer);
  void note_stuck(Instant now, MemoryLink& memory);

  MemoryPeers& peers_;
  ChannelPoller& poller_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  PeerLifecycle& lifecycle_;
  MemorySetup& setup_;
  FrameHandler& frame_handler_;
  const message::InboxCounters& inbox_counters_;
  Stats& stats_;

  ReceiveBackpressure backpressure_;
  wire::FrameList frames_;
  std::vector<std::byte> staging_;  // for bytes of references that have no place yet
  std::size_t referred_ = 0;        // bytes of references, of the peer that is polled
  const char* fault_ = nullptr;     // why the memory of the peer that is polled must be left
  bool deferred_ = false;
  Instant polled_at_{};
  Instant retry_at_ = kNever;
  Instant look_again_at_ = kNever;
};

}  // namespace pullman::engine
