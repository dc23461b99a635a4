// A link: reliable delivery to one peer over one rail. It reports which packets were acknowledged
// and which were lost.
//
// Combines a send window, an ACK tracker, an RTT estimate, a loss detector, a congestion window and
// the path's packet size. Pure state: no I/O, no clock, no allocation. Does not know what packets
// carry (the body of a lost packet is sent again as it is), which NIC takes them, nor how peers
// find each other. Methods are of four kinds: getters, input (handle_*), commands, and outputs that
// the engine collects: acked(), lost(), take_probe(), ack_need().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/pool.h"
#include "base/time.h"
#include "channel/packet.h"
#include "reliability/ack_tracker.h"
#include "reliability/congestion.h"
#include "reliability/hotel.h"
#include "reliability/loss_detector.h"
#include "reliability/path_size.h"
#include "reliability/rtt.h"
#include "reliability/send_window.h"
#include "wire/frame.h"
#include "wire/header.h"

namespace pullman::reliability {

using channel::ChannelKind;
using channel::PacketQueue;
using wire::Verdict;

struct LinkOptions {
  std::uint32_t window = wire::kWindow;  // the largest number of packets in flight
  std::uint32_t packets_per_ack = 256;
  Duration ack_delay = std::chrono::microseconds(50);
  Duration pto_initial = std::chrono::milliseconds(100);
  Duration pto_floor = std::chrono::milliseconds(1);
  Duration pto_ceiling = std::chrono::seconds(1);  // upper bound of the backed-off timeout
};

// The resources that the links of one engine share.
struct LinkResources {
  WindowResources window;
  Pool<ArrivalBitmap>& bitmaps;
};

// When the ACK in hand arrived, as far as that is known.
struct AckTiming {
  Duration ago{};     // the time since it was taken from the NIC
  Duration unseen{};  // the time for which it may have waited in the NIC before, unpolled
};

class Link {
 public:
  // Options and resources outlive the link and are the same for all links of an engine. `rail` goes
  // into the packet headers, to say whose packet numbers they contain (wire.md 2.10).
  Link(const LinkOptions& options, const LinkResources& shared, PacketNumber first_number,
       std::uint8_t rail = 0);
  Link(LinkOptions&&, const LinkResources&, PacketNumber, std::uint8_t = 0) = delete;
  Link(const LinkOptions&, LinkResources&&, PacketNumber, std::uint8_t = 0) = delete;

  // --- getters
  // Returns true if the send window, the congestion window and the peer's credit allow another
  // packet (docs/congestion.md).
  bool may_send() const { return window_.in_flight() < allowed_ && window_.has_space(); }
  bool has_space() const { return window_.has_space(); }
  // Returns how many packets they allow.
  std::uint32_t permits() const {
    return allowed_ > window_.in_flight()
               ? std::min(allowed_ - window_.in_flight(), window_.space())
               : 0;
  }
  std::uint32_t in_flight() const { return window_.in_flight(); }
  const SendWindow& window() const { return window_; }
  Packet* find(PacketNumber number) { return window_.find(number); }
  std::uint64_t spurious() const { return spurious_; }
  const Rtt& rtt() const { return rtt_; }
  const AckTracker& acks() const { return acks_; }
  std::uint32_t congestion_window() const { return congestion_.window(); }
  Instant next_loss_due() const { return loss_.next_due(); }
  AckNeed ack_need() const { return acks_.need(); }
  PathSize& path() { return path_; }
  const PathSize& path() const { return path_; }
  Duration timeout() const;
  // Returns when the newest packet acknowledged by the last ACK with news was sent.
  Instant answered_sent_at() const { return answered_; }
  // Returns true if the last RTT sample is old. A rail that looks slow carries nothing and is not
  // measured, so its next sample outweighs all before it.
  bool rtt_is_stale(Instant now) const { return rtt_.sampled() && is_stale(answered_, now); }
  std::uint64_t packets_arrived() const { return arrived_count_; }
  std::uint32_t packets_lost() const { return lost_count_; }  // wraps around
  // Returns how many of them were found lost only by what came after a probe timeout.
  std::uint32_t lost_after_timeout() const { return lost_after_timeout_; }
  std::uint64_t timeouts() const { return timeouts_; }
  std::uint32_t credit() const { return credit_; }  // the peer's, in packets

  // --- input
  // Takes the peer's first packet number and its credit from its HELLO or WELCOME.
  void handle_hello(PacketNumber first, std::uint16_t credit);

  // Our HELLO was answered by a WELCOME. Ends the backoff (wire.md 7.3), restarts the timer of the
  // HELLO, which asks for the proof again (5.9), and takes the first RTT sample if this HELLO is
  // the one that was answered. Without that sample the loss of all first packets would cost the
  // initial timeout (incast: docs/congestion.md).
  void handle_answer(Instant now, Packet& hello, std::uint32_t answered);

  // Processes the ACK in a header, with the SACK frame of its packet, if any. If it returns
  // kAccepted, acked() and lost() may have grown; otherwise nothing has changed.
  Verdict handle_ack(Instant now, const wire::PacketHeader& header, const wire::Frame* sack,
                     AckTiming timing = {});

  // Returns true if handle_ack() of this header without a SACK frame would return kAccepted.
  bool believes(const wire::PacketHeader& header) const {
    return was_sent(expand(header.cumulative, window_.next()));
  }
  // Returns true if the header acknowledges everything in flight.
  bool acks_all(const wire::PacketHeader& header) const {
    return header.cumulative == low32(window_.next());
  }

  // Returns true if the header, without a SACK frame, repeats the newest ACK, so that handle_ack()
  // has nothing to do. In a one-way stream nearly all ACKs that its receiver gets do.
  bool repeats_ack(const wire::PacketHeader& header) const {
    return header.cumulative == low32(acked_until_) && header.credit == credit_ &&
           header.late == late_seen_;
  }

  Arrival judge(const wire::PacketHeader& header) const { return acks_.judge(header); }
  // `gap` is how long the NIC had not been polled before the packet was received.
  void handle_arrival(Instant now, const wire::PacketHeader& header, wire::PollGap gap = {}) {
    acks_.note(now, header, gap);
  }
  void handle_run(Instant now, const wire::PacketHeader& last, std::uint32_t count,
                  wire::PollGap gap = {}) {
    acks_.note_run(now, last, count, gap);
  }
  void handle_duplicate(const wire::PacketHeader& header) { acks_.note_duplicate(header); }
  // The same for a copy of a protected packet, which is not acknowledged again.
  void handle_copy(const wire::PacketHeader& header) { acks_.note_copy(header); }
  void handle_redundant() { acks_.note_late(); }
  void handle_ping() { acks_.ask_now(); }

  // A packet's timer has expired (probe timeout). A probe on the packet's channel becomes due; the
  // packet stays in flight.
  void handle_eviction(Instant now, Packet& packet);

  // A PING is among acked(); the newest one was sent at `sent_at`. Takes an RTT sample from it if
  // it took longer than the timeout. Other samples come from the newest packet that an ACK reports,
  // which is never one of a channel far slower than the other; so each PING on the slow channel
  // would time out, and cause the next one.
  void handle_probe_acked(Instant now, Instant sent_at);

  // Called when next_loss_due() is reached.
  void handle_loss_due(Instant now);

  // --- commands
  // Numbers the packet, checks it in, and encodes its header with a piggybacked ACK. Needs
  // may_send(), or has_space() for a probe.
  void stamp(Instant now, wire::ConnectionId to, std::uint16_t credit, wire::PacketType type,
             Packet& packet);

  // The same for all chunks of a run, at most permits().
  void stamp_run(Instant now, wire::ConnectionId to, std::uint16_t credit, Run& run);
  // Makes the last packet of a run ask for its ACK if that is due or wanted. stamp() does so for
  // single packets.
  void ask_if_due(Run& run);

  // Puts the chunks from `at` on, which the port did not take, into lost(), to be sent again under
  // new numbers.
  void take_back(Run& run, std::uint32_t at);

  // Encodes the header of a WELCOME into a packet of that size. The WELCOME answers the HELLO with
  // that packet number, and is itself not kept for retransmission.
  void write_welcome(wire::ConnectionId to, std::uint16_t credit, std::uint32_t answered,
                     std::span<std::byte> packet) const;

  // Encodes an ACK that leaves alone into `out` (room for kAckBytes); returns its length.
  std::size_t write_ack(Instant now, wire::ConnectionId to, std::uint16_t credit, std::byte* out);
  // Returns the number of the last one: how many had left before it.
  PacketNumber last_ack_number() const { return acks_sent_ - 1; }
  static constexpr std::size_t kAckBytes = wire::kHeaderBytes + AckTracker::kMaxSackBytes;

  // Removes a packet from flight without evidence of its loss: a HELLO, for example, is sent again
  // without any.
  void abandon(Packet& packet) { window_.remove(packet); }

  // Forgets the path's RTTs, congestion window and backoff after an outage. The kernel queues
  // packets for a neighbour whose address it does not know and sends them once the link is back, so
  // their RTTs are as long as the outage.
  void reset_path_state();

  // --- output
  PacketQueue& acked() { return acked_; }  // delivered: to be released
  PacketQueue& lost() { return lost_; }    // to be sent again
  const PacketQueue& lost() const { return lost_; }
  // Returns the channel on which a probe is due, if any; at most once per timeout.
  std::optional<ChannelKind> take_probe();

 private:
  static constexpr std::uint8_t kMaxBackoff = 16;
  static constexpr Duration kStale = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kAskedPer = 16;  // packets per request for an ACK, see asks_at()
  static_assert(wire::kMaxRails <= 8 && kMaxBackoff < 32, "rail_ and backoff_ share a byte");

  // The newest packet that an ACK acknowledged.
  struct Newest {
    PacketNumber end = 0;  // one past its number; 0: there is none
    Instant sent_at{};
  };

  // Returns true if a cumulative ACK of `end` is possible: all packets below it have been numbered,
  // and it is not below the first number (wire.md 6.4).
  bool was_sent(PacketNumber end) const {
    return end - window_.first() <= window_.next() - window_.first();
  }
  bool is_stale(Instant measured, Instant now) const {
    return now > measured + std::max<Duration>(kStale, 4 * rtt_.smoothed());
  }
  bool plausible(const wire::Frame& sack) const;
  PacketNumber reported_end(PacketNumber cumulative, const wire::Frame* sack) const;
  std::uint32_t release_until(PacketNumber cumulative, Newest& newest);
  std::uint32_t release_sacked(const wire::Frame& sack, Newest& newest);
  void release(Packet& packet, Newest& newest);
  std::uint32_t release_chunks(Run& run, std::uint64_t chunks, Newest& newest);
  void note_released(const Packet& packet, std::size_t bytes, PacketNumber end, Newest& newest);
  void note_late(Instant now, std::uint16_t late);
  [[gnu::always_inline]] void find_losses(Instant now) {  // called for every ACK, rarely finds any
    const std::size_t before = lost_.size();
    loss_.detect(now, rtt_, window_, lost_);
    if (lost_.size() != before) [[unlikely]]
      handle_losses(lost_.size() - before);
  }
  void handle_losses(std::size_t count);
  bool asks_at(PacketNumber end);
  void recompute_timeout();
  std::size_t note_path_losses(std::size_t count);
  void count_after_timeout(std::size_t count);
  void recompute_allowed();

  const LinkOptions& options_;
  SendWindow window_;
  AckTracker acks_;
  Rtt rtt_;
  Duration delay_{};  // the latest RTT less the time in which either end did not poll
  LossDetector loss_;
  Congestion congestion_;
  PathSize path_;
  PacketQueue acked_;
  PacketQueue lost_;
  std::uint32_t allowed_ = 0;     // packets in flight: the least of window, credit and congestion
  std::uint32_t credit_ = 1;      // the peer's, from its newest ACK
  PacketNumber acked_until_ = 0;  // the highest cumulative ACK
  Duration stay_{-1};             // timeout(), as last computed
  Instant last_probe_ = Instant::min();
  Instant answered_ = Instant::min();
  std::uint64_t arrived_count_ = 0;
  PacketNumber acks_sent_ = 0;  // alone
  std::uint32_t lost_count_ = 0;
  std::uint32_t lost_after_timeout_ = 0;
  std::uint32_t spurious_ = 0;    // spurious retransmissions
  std::uint32_t timeouts_ = 0;    // 32 bits do: each takes at least a tenth of a millisecond
  std::uint16_t asked_;           // low bits of `end` when asks_at() last returned true
  std::uint16_t late_seen_ = 0;   // the newest PacketHeader::late of the peer
  std::uint8_t backoff_ : 5 = 0;  // doublings of the timeout since the last newly acked packet
  std::uint8_t rail_ : 3;         // the number of the rail
  std::uint8_t floor_ = 0;        // the hotel's floor for stay_
  std::optional<ChannelKind> probe_;
};

}  // namespace pullman::reliability
