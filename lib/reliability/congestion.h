// The congestion window of one link: delay-based, like Swift (Kumar et al., SIGCOMM 2020).
//
// Decides once per round trip, by the lowest RTT in that round, since a queue delays every packet,
// a host that is busy for a moment only some. Up to a little above the minimum RTT there is no
// queue, and the window grows by an eighth and a packet; in slow start it doubles. Above that there
// is a queue, and the window grows by one packet (less, if it is small), so that flows converge to
// equal shares. Above the target delay, which is the same for all flows and higher for small
// windows, it shrinks in proportion to the excess, at most by half. Loss is a weak signal, since
// datagram networks lose packets at random: without a queue one packet in twelve may be lost; with
// a queue a round with a loss costs at least a quarter of the window. docs/congestion.md gives the
// source of each number. Does not know the packets, nor the receiver's credit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace pullman::reliability {

class Congestion {
 public:
  explicit Congestion(std::uint32_t limit);

  // An ACK of `acked` packets; `in_flight` counts those in flight before it. `next_number` is the
  // next packet number that the link will use, `highest_acked` the highest acknowledged by this
  // ACK. A round ends when a packet sent after its beginning is acknowledged.
  struct Ack {
    std::uint32_t acked = 0;
    std::uint32_t in_flight = 0;
    std::uint64_t highest_acked = 0;
    std::uint64_t next_number = 0;
    // The latest RTT sample less the time in which either end did not poll. A packet may have
    // waited for less than that, so this can be below 0. 0 if there is no sample yet.
    Duration delay{};
    bool is_sampled = false;  // by this ACK
    Duration least{};         // the minimum RTT, without that reduction
  };
  void on_ack(const Ack& ack) {
    acked_ += ack.acked;
    if (before_timeouts_ != 0 && ack.is_sampled) [[unlikely]]
      judge_timeouts(ack.delay);
    if (ack.in_flight + ack.in_flight / 2 >= window_) was_limiting_ = true;
    if (ack.delay <= kTarget && ack.least > Duration(0)) may_be_short_ = true;
    round_least_ = std::min(round_least_, std::max(ack.delay, shortest(ack.least)));
    if (ack.highest_acked >= round_end_) end_round(ack);
  }

  void on_lost(std::uint32_t packets) { lost_ += packets; }

  // Halves the window: no ACK came for several timeouts, so the network's state is unknown. If the
  // next sample tells that the peer had not run meanwhile, that is undone (as RFC 4015 does).
  void on_timeout();

  std::uint32_t window() const { return window_; }

 private:
  // The target delay of a path with a lower RTT. A receiver on a busy machine takes hundreds of
  // microseconds without any congestion. It is the same for all flows that share a queue, or a flow
  // that has never seen the queue empty would take more than its share.
  static constexpr Duration kTarget = std::chrono::microseconds(500);

  // The window in parts of a packet, so that a small window can shrink by less than a packet.
  using Fine = std::uint32_t;
  static constexpr Fine kPacket = 256;

  static constexpr std::uint32_t kInitial = 16;
  static constexpr std::uint32_t kLeast = 1;

  void end_round(const Ack& ack);
  void judge_timeouts(Duration delay);
  void grow(Duration delay, Duration queueing);
  void shrink(Fine by);
  Fine part(std::uint64_t of, std::uint64_t whole) const {
    return static_cast<Fine>(fine_ * of / whole);
  }
  void settle(Fine next);
  void note_ineffective(Duration delay, Duration least);
  Duration target() const;
  // Returns the lower bound of Ack::delay. A path that may be short has none: if an end always
  // polls late, the minimum RTT is higher than the path's own.
  Duration shortest(Duration least) const { return may_be_short_ ? Duration(0) : least; }

  Fine limit_;                           // upper bound of fine_
  Fine fine_;                            // the window, in parts of a packet
  std::uint32_t window_;                 // whole packets of it
  std::uint32_t acked_ = 0;              // this round
  std::uint32_t lost_ = 0;               // this round
  std::uint16_t before_timeouts_ = 0;    // the window before they halved it; 0: they have not
  std::uint8_t ineffective_rounds_ = 0;  // consecutive rounds in which shrinking did not help
  // These share a byte, since an idle peer may have only 1024.
  bool was_limiting_ : 1 = false;  // this round: two thirds of the window were in flight
  bool slow_start_ : 1 = true;
  bool may_be_short_ : 1 = false;           // the path's RTT may be below the target
  bool lossy_ : 1 = false;                  // the last round lost more than random loss explains
  Duration round_least_ = Duration::max();  // this round's lowest delay
  std::uint64_t round_end_ = 0;             // the round ends when this number is acknowledged
  Duration base_{};                         // RTT of a path that is longer than the target; else 0
};

}  // namespace pullman::reliability
