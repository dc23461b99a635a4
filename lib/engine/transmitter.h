// Serves the peers that have something to send: each once a turn, within a quota. Lost packets come
// first, then control, then new work (transmitter.cc), over the rail that is best for it
// (transmit_rails.cc), long messages as runs of chunks (transmit_runs.cc).
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
              NicExchange& exchange, Handshake& handshake, Stats& stats)
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
        handshake_(handshake),
        stats_(stats) {}

  // --- in a turn

  void begin_turn() { retransmits_left_ = kRetransmitsPerTurn; }
  // Small messages that were appended since the last turn wait for nothing but the program's next
  // call: they leave before anything is polled, which may cost a system call a channel. Not before
  // it is known what ACKs allow: chunks, and what may not leave whole.
  void send_appended(Instant now);
  bool has_appended() const { return has_appended_; }
  // Each peer that was ready when the turn began is served once, until the turn has lasted long
  // enough: the next one begins with the rest.
  void transmit(Instant now);

  // --- at once

  // What was sent to the peer leaves in the next turn.
  void wait_for_turn(Peer& peer) {
    has_appended_ = has_appended_ || peer.outbox.queued_packets() != 0;
    ready_.mark(peer);
  }
  // Sends what one peer has, within its quota. True if it has more that could leave next turn;
  // false if it has nothing, or must wait for an ACK (which makes it ready again).
  bool serve(Instant now, Peer& peer);
  // One packet of new work; the link must let it leave. False: no room, or no packet.
  bool send_new(Instant now, Rail& rail, Leaves how = Leaves::kInBatch);
  // Closing, although not all is delivered: peers that hear us are told so if there is room. Nobody
  // stays who could tell them again, so they are told twice: a packet may be lost.
  void send_last_byes(Instant now);

  // What serve() would do, had the ports room and the pool packets.
  Sends can_send(Peer& peer) const;
  // The next turn sends something.
  bool has_work() const { return ready_.any_unblocked() || nics_.has_posted(); }

 private:
  // Retransmissions in one turn, then new work and ACKs (wire.md 7.4).
  static constexpr std::size_t kRetransmitsPerTurn = 16;
  static constexpr int kByeRepeats = 2;

  // What became of an attempt to send.
  enum class Next : std::uint8_t {
    kGoOn,     // something left: there may be more
    kNothing,  // there is nothing to send, or it must wait for an ACK
    kBlocked,  // no room or no packet: the next turn goes on
  };

  bool serve_home(Instant now, Peer& peer);  // with no other rail
  Next send_next(Instant now, Rail& rail, std::size_t most, std::size_t& sent);
  bool resend_lost(Instant now, Rail& rail);
  bool send_probe(Instant now, Rail& rail);
  bool probe_with_oldest(Instant now, Rail& rail);
  bool send_control_frames(Instant now, Rail& rail, ChannelKind kind = ChannelKind::kCommand);

  bool serve_rails(Instant now, Peer& peer);
  void tend_rail(Instant now, Rail& rail, bool& more);
  Next resend_evacuated(Instant now, Peer& peer);

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
  Handshake& handshake_;
  Stats& stats_;

  bool has_appended_ = false;
  std::size_t retransmits_left_ = 0;  // this turn
  std::uint32_t ports_full_ = 0;      // this turn: see rail_choice.h
};

}  // namespace pullman::engine
