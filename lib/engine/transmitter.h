// Serves the peers that have something to send, each once per turn and within a quota. Lost packets
// leave first, then control frames, then new work (transmitter.cc), each on the rail that is best
// for it (transmit_rails.cc); long messages leave as runs of chunks (transmit_runs.cc). To a peer
// on the same host all but the former leaves through memory (transmit_memory.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/handshake/handshake.h"
#include "engine/peer/rail_choice.h"
#include "engine/session/path_sizer.h"

namespace pullman::engine {

class Transmitter {
 public:
  Transmitter(const Config& config, PeerTable& peers, NicTable& nics, ChannelPoller& poller,
              const PollClock& clock, ReadyPeers& ready, PacketSender& sender,
              PeerLifecycle& lifecycle, PathSizer& path_sizer, RailManager& rails,
              NicExchange& exchange, MemorySetup& memory, Handshake& handshake, Stats& stats)
      : checksum_(config.checksum),
        peers_(peers),
        nics_(nics),
        poller_(poller),
        clock_(clock),
        ready_(ready),
        sender_(sender),
        lifecycle_(lifecycle),
        path_sizer_(path_sizer),
        rails_(rails),
        exchange_(exchange),
        memory_(memory),
        handshake_(handshake),
        stats_(stats) {}

  // --- in a turn

  void begin_turn() { retransmits_left_ = kRetransmitsPerTurn; }
  // Sends the small messages that were appended since the last turn before any channel is polled,
  // since polling may cost a system call per channel. Chunks, and messages that the window does not
  // let leave whole, wait until the ACKs of this turn are known.
  void send_appended(Instant now);
  bool has_appended() const { return has_appended_; }
  // Serves each peer that was ready when the turn began once, until the turn has sent its quota of
  // packets; the next turn begins with the rest.
  void transmit(Instant now);

  // --- at once

  // Lets what was accepted for the peer leave in the next turn.
  void wait_for_turn(Peer& peer) {
    has_appended_ = has_appended_ || peer.outbox.queued_packets() != 0;
    ready_.mark(peer);
  }
  // Sends what one peer has, within its quota. Returns true if it has more that could leave next
  // turn; false if it has nothing, or must wait for an ACK (which makes it ready again).
  bool serve(Instant now, Peer& peer);
  // Sends one packet of new work; the link must let it leave. Returns false if a channel has no
  // room or the pool no packet.
  bool send_new(Instant now, Rail& rail, Leaves how = Leaves::kInBatch);
  // The same by memory, which must have room. Returns false if the next turn is to go on.
  bool send_at_once_by_memory(Instant now, Peer& peer, MemoryRail& memory);
  // Sends BYE, if there is room, to the connected peers of an engine that closes although not all
  // is delivered. Nobody stays to retransmit it, so it is sent twice in case a packet is lost.
  void send_last_byes(Instant now);

  // Returns what serve() would send if the ports had room and the pool packets.
  Sends can_send(Peer& peer) const;
  // Returns whether the next turn has something to send.
  bool has_work() const { return ready_.any_unblocked() || nics_.has_posted(); }

 private:
  // At most this many retransmissions leave in one turn, then new work and ACKs (wire.md 7.4).
  static constexpr std::size_t kRetransmitsPerTurn = 16;
  static constexpr int kByeRepeats = 2;
  // At most this many packets for one peer on this host leave in one turn.
  static constexpr std::size_t kMemoryShare = 64;

  // The result of an attempt to send.
  enum class Next : std::uint8_t {
    kGoOn,     // something was sent, there may be more
    kNothing,  // there is nothing to send, or it must wait for an ACK
    kBlocked,  // there is no room or no packet; the next turn goes on
  };

  bool serve_home(Instant now, Peer& peer);  // for a peer with one rail
  Next send_next(Instant now, Rail& rail, std::size_t most, std::size_t& sent);
  bool resend_lost(Instant now, Rail& rail);
  bool send_probe(Instant now, Rail& rail);
  bool probe_with_oldest(Instant now, Rail& rail);
  bool send_control_frames(Instant now, Rail& rail, ChannelKind kind = ChannelKind::kCommand);

  bool serve_rails(Instant now, Peer& peer);
  void tend_rail(Instant now, Rail& rail, bool& more);
  Next resend_evacuated(Instant now, Peer& peer);
  void note_if_credit_stalls(Peer& peer);

  bool serve_memory(Instant now, Peer& peer, MemoryRail& memory);
  bool serve_nics(Instant now, Peer& peer);
  bool send_new_by_memory(Peer& peer, MemoryRail& memory);
  bool send_frames_by_memory(Peer& peer, MemoryRail& memory);
  void post(Peer& peer, MemoryRail& memory, Packet& packet);
  bool wake_by_nic(Instant now, Peer& peer, MemoryRail& memory);
  Sends can_send_by_memory(Peer& peer, const MemoryRail& memory) const;
  static bool nics_can_send(Peer& peer);
  void write_control(Peer& peer, Packet& packet);

  std::size_t send_runs(Instant now, Rail& rail, std::size_t most);
  bool polls_infrequently(const Rail& rail) const;
  bool waits_for_more(const Rail& rail) const;
  message::Outbox::Heads heads_for(const Rail& rail) const;

  const bool checksum_;
  PeerTable& peers_;
  NicTable& nics_;
  ChannelPoller& poller_;
  const PollClock& clock_;
  ReadyPeers& ready_;
  PacketSender& sender_;
  PeerLifecycle& lifecycle_;
  PathSizer& path_sizer_;
  RailManager& rails_;
  NicExchange& exchange_;
  MemorySetup& memory_;
  Handshake& handshake_;
  Stats& stats_;

  bool has_appended_ = false;
  std::size_t retransmits_left_ = 0;  // this turn
  std::uint32_t ports_full_ = 0;      // this turn; see rail_choice.h
};

}  // namespace pullman::engine
