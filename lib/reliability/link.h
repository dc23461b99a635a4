// A link: one peer over one rail. It makes packets arrive, or says which did not.
//
// Joins a send window, an ack tracker, a round-trip estimate, a loss detector, a congestion window
// and the path's packet size. Pure state: no I/O, no clock, no allocation. Does not know what
// packets carry (a lost packet's body is simply due again), which NIC takes them, nor how peers
// find each other. Methods come in four kinds: getters; handle_*: input; commands; and outputs the
// engine collects: acked(), lost(), take_probe(), ack_need().
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
  std::uint32_t window = wire::kWindow;  // packets in flight at most
  std::uint32_t packets_per_ack = 256;
  Duration ack_delay = std::chrono::microseconds(50);
  Duration rto_initial = std::chrono::milliseconds(100);
  Duration rto_floor = std::chrono::milliseconds(1);
  Duration rto_ceiling = std::chrono::seconds(1);  // of the backed-off timeout
};

// What links of one engine share.
struct LinkResources {
  WindowResources window;
  Pool<ArrivalBitmap>& bitmaps;
};

// When an ACK came that is handled now, as far as that is known.
struct AckTiming {
  Duration ago{};     // it was taken from the NIC so long ago
  Duration unseen{};  // and may have lain there so long before, since nobody had looked
};

class Link {
 public:
  // Options and resources outlive the link: they are the same for all of an engine's. `rail`: what
  // its packets say whose numbers they bear (wire.md 2.10).
  Link(const LinkOptions& options, const LinkResources& shared, PacketNumber first_number,
       std::uint8_t rail = 0);
  Link(LinkOptions&&, const LinkResources&, PacketNumber, std::uint8_t = 0) = delete;
  Link(const LinkOptions&, LinkResources&&, PacketNumber, std::uint8_t = 0) = delete;

  // --- getters
  // Whether another packet may leave: the least of the window, the congestion window and the peer's
  // credit (docs/congestion.md).
  bool may_send() const { return window_.in_flight() < allowed_ && window_.has_space(); }
  bool has_space() const { return window_.has_space(); }
  // How many.
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
  // When the newest of the packets that the last ACK with news acknowledged was sent.
  Instant answered_sent_at() const { return answered_; }
  // Whether the round trip was measured, but not lately: of a rail that carries nothing, since it
  // looks slow, the next sample says more than all before it.
  bool rtt_is_stale(Instant now) const { return rtt_.sampled() && now > answered_ + kStale; }
  std::uint64_t packets_arrived() const { return arrived_count_; }
  std::uint32_t packets_lost() const { return lost_count_; }  // round and round
  std::uint64_t timeouts() const { return timeouts_; }

  // --- input
  // The peer introduced itself: its first packet number and its credit.
  void handle_hello(PacketNumber first, std::uint16_t credit);

  // Our HELLO was answered: the timeout is no longer doubled (wire.md 7.3), that of the HELLO,
  // which asks for the proof again (5.9), is counted from now on, and there is a first round trip,
  // if this is the one that was answered. Without it the loss of all that is sent first costs the
  // initial timeout (incast: docs/congestion.md).
  void handle_answer(Instant now, Packet& hello, std::uint32_t answered);

  // The acknowledging half of a header, with the SACK frame that came along, if any. On kAccepted,
  // acked() and lost() have news. Anything else: nothing was touched.
  Verdict handle_ack(Instant now, const wire::PacketHeader& header, const wire::Frame* sack,
                     AckTiming timing = {});

  // handle_ack() of this header without a SACK frame would return kAccepted.
  bool believes(const wire::PacketHeader& header) const {
    return was_sent(expand(header.cumulative, window_.next()));
  }
  // It acknowledges everything that is in flight.
  bool acks_all(const wire::PacketHeader& header) const {
    return header.cumulative == low32(window_.next());
  }

  // Without a SACK frame it says what the newest ACK before it said: handle_ack() has nothing to
  // do. Of a stream one way so are nearly all that ride on the data.
  bool repeats_ack(const wire::PacketHeader& header) const {
    return header.cumulative == low32(acked_until_) && header.credit == credit_ &&
           header.late == late_seen_;
  }

  Arrival judge(const wire::PacketHeader& header) const { return acks_.judge(header); }
  // `gap`: so long nobody had polled before.
  void handle_arrival(Instant now, const wire::PacketHeader& header, wire::PollGap gap = {}) {
    acks_.note(now, header, gap);
  }
  void handle_run(Instant now, const wire::PacketHeader& last, std::uint32_t count,
                  wire::PollGap gap = {}) {
    acks_.note_run(now, last, count, gap);
  }
  void handle_duplicate(const wire::PacketHeader& header) { acks_.note_duplicate(header); }
  void handle_redundant() { acks_.note_late(); }
  void handle_ping() { acks_.ask_now(); }

  // A guest's stay is over: ask the peer, by a probe on the packet's channel. It stays in flight.
  void handle_eviction(Instant now, Packet& packet);

  // PINGs are among acked(); the youngest of them left then. The round trip is measured by the
  // newest packet an ACK reports; where one channel is far slower than the other, its packets never
  // are that. Each of its PINGs would be overdue, and asked about with the next.
  void handle_probe_acked(Instant now, Instant sent_at);

  // next_loss_due() has come.
  void handle_loss_due(Instant now);

  // --- commands
  // Numbers the packet, checks it in and encodes its header, with an ACK riding along. may_send(),
  // or has_space() for a probe.
  void stamp(Instant now, wire::ConnectionId to, std::uint16_t credit, wire::PacketType type,
             Packet& packet);

  // The same for all of a run, whose chunks permits() allows.
  void stamp_run(Instant now, wire::ConnectionId to, std::uint16_t credit, Run& run);
  // Its last packet asks for an ACK if that is due, or it is wanted; other packets do when they are
  // stamped.
  void ask_if_due(Run& run);

  // The port did not take the chunks from `at` on: they are to be sent again, under new numbers.
  void take_back(Run& run, std::uint32_t at);

  // Encodes the header of a WELCOME, which is never remembered, into a packet of that many bytes.
  // It answers the HELLO of this number.
  void write_welcome(wire::ConnectionId to, std::uint16_t credit, std::uint32_t answered,
                     std::span<std::byte> packet) const;

  // Encodes an ACK that leaves alone into `out` (room for kAckBytes); returns its length.
  std::size_t write_ack(Instant now, wire::ConnectionId to, std::uint16_t credit, std::byte* out);
  static constexpr std::size_t kAckBytes = wire::kHeaderBytes + AckTracker::kMaxSackBytes;

  // Gives up on a packet in flight without evidence: HELLO is simply sent again.
  void abandon(Packet& packet) { window_.remove(packet); }

  // After a while in which nothing came through: what was known of the path counts no more. The
  // kernel keeps packets for a neighbour whose address it does not know, and lets them go once the
  // link is back: their round trips took as long as the cut.
  void reset_path_state();

  // --- output
  PacketQueue& acked() { return acked_; }  // delivered: release them
  PacketQueue& lost() { return lost_; }    // to be sent again
  const PacketQueue& lost() const { return lost_; }
  // The channel that a probe is due on; at most once per timeout.
  std::optional<ChannelKind> take_probe();

 private:
  static constexpr std::uint8_t kMaxBackoff = 16;
  static constexpr Duration kStale = std::chrono::milliseconds(100);
  static constexpr std::uint32_t kAskedPer = 16;  // packets, see asks_at()
  static_assert(wire::kMaxRails <= 8 && kMaxBackoff < 32, "rail_ and backoff_ share a byte");

  // The newest of the packets that an ACK released.
  struct Newest {
    PacketNumber end = 0;  // one past its number; 0: there is none
    Instant sent_at{};
  };

  // All packets below have been numbered; no cumulative ack is below the first (wire.md 6.4).
  bool was_sent(PacketNumber end) const {
    return end - window_.first() <= window_.next() - window_.first();
  }
  bool plausible(const wire::Frame& sack) const;
  PacketNumber reported_end(PacketNumber cumulative, const wire::Frame* sack) const;
  std::uint32_t release_until(PacketNumber cumulative, Newest& newest);
  std::uint32_t release_sacked(const wire::Frame& sack, Newest& newest);
  void release(Packet& packet, Newest& newest);
  std::uint32_t release_chunks(Run& run, std::uint64_t chunks, Newest& newest);
  void note_released(const Packet& packet, std::size_t bytes, PacketNumber end, Newest& newest);
  void note_late(Instant now, std::uint16_t late);
  [[gnu::always_inline]] void find_losses(Instant now) {  // for every ack, and seldom any
    const std::size_t before = lost_.size();
    loss_.detect(now, rtt_, window_, lost_);
    if (lost_.size() != before) [[unlikely]]
      handle_losses(lost_.size() - before);
  }
  void handle_losses(std::size_t count);
  bool asks_at(PacketNumber end);
  void recompute_timeout();
  std::size_t note_path_losses(std::size_t count);
  void recompute_allowed();

  const LinkOptions& options_;
  SendWindow window_;
  AckTracker acks_;
  Rtt rtt_;
  Duration delay_{};  // the latest round trip, less what may not be the network's
  LossDetector loss_;
  Congestion congestion_;
  PathSize path_;
  PacketQueue acked_;
  PacketQueue lost_;
  std::uint32_t allowed_ = 0;     // packets in flight: least of window, credit and congestion
  std::uint32_t credit_ = 1;      // the peer's, from its newest ack
  PacketNumber acked_until_ = 0;  // highest cumulative ack seen
  Duration stay_{-1};             // timeout(), as last reckoned
  Instant last_probe_ = Instant::min();
  Instant answered_ = Instant::min();
  std::uint64_t arrived_count_ = 0;
  std::uint32_t lost_count_ = 0;
  std::uint32_t spurious_ = 0;        // packets sent again, of which the peer had the first, too
  std::uint32_t control_number_ = 0;  // counts ACKs sent alone
  std::uint32_t timeouts_ = 0;        // each takes a tenth of a millisecond at least
  std::uint16_t asked_;               // low bits of where asks_at() last did
  std::uint16_t late_seen_ = 0;       // the peer's PacketHeader::late when last seen
  std::uint8_t backoff_ : 5 = 0;      // doublings of the timeout since the last news
  std::uint8_t rail_ : 3;             // whose packet numbers these are
  std::uint8_t floor_ = 0;            // the hotel's for stay_
  std::optional<ChannelKind> probe_;
};

}  // namespace pullman::reliability
