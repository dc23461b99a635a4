// How many packets may be in flight to one peer, as far as the network is concerned: delay-based,
// in Swift's manner (Kumar et al., SIGCOMM 2020).
//
// Judges once per round trip, by the least round-trip time seen in it: a queue delays every packet,
// a host that was busy for a moment only some. Up to a little above the least ever seen nobody
// waits, and the window grows by an eighth and a packet; at the beginning it doubles. Beyond, there
// is a queue, and it grows by one packet (less, if it is small): as all flows do the same, they
// come to equal shares. Above the target, which is the same for all and greater for small windows,
// it shrinks in proportion to the excess, at most by half. Loss is a weak signal: datagram networks
// lose at random. Where there is no queue one packet in twelve may be lost; where there is, a loss
// costs a quarter. Which number is from where: docs/congestion.md. Does not know what the packets
// are, nor the receiver's credit.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace pullman::reliability {

class Congestion {
 public:
  explicit Congestion(std::uint32_t limit);

  // `acked` packets have arrived; `in_flight` counts what was in flight before that. `next_number`
  // is the next packet number the link will use, `highest_acked` the highest now acked: a round
  // ends when a packet sent after its beginning is acked.
  struct Ack {
    std::uint32_t acked = 0;
    std::uint32_t in_flight = 0;
    std::uint64_t highest_acked = 0;
    std::uint64_t next_number = 0;
    // The latest sample, less what nobody looked for it, which may be more than it waited for
    // that: then below 0. 0 if there is none yet.
    Duration delay{};
    Duration least{};  // least round trip ever, with all that
  };
  void on_ack(const Ack& ack) {
    acked_ += ack.acked;
    if (ack.in_flight + ack.in_flight / 2 >= window_) was_limiting_ = true;
    if (ack.delay <= kTarget && ack.least > Duration(0)) may_be_short_ = true;
    round_least_ = std::min(round_least_, std::max(ack.delay, shortest(ack.least)));
    if (ack.highest_acked >= round_end_) end_round(ack);
  }

  void on_lost(std::uint32_t packets) { lost_ += packets; }

  // Nothing came back for a whole timeout: the network's state is unknown, start small.
  void on_timeout();

  std::uint32_t window() const { return window_; }

 private:
  // The round trip that is aimed at on a path that is shorter: a receiver on a busy machine takes
  // hundreds of microseconds without any congestion. A constant for all who meet in one queue, or a
  // flow that never saw it empty takes more than its share.
  static constexpr Duration kTarget = std::chrono::microseconds(500);

  // Parts of a packet, so that a small window can shrink by less than one.
  using Fine = std::uint32_t;
  static constexpr Fine kPacket = 256;

  static constexpr std::uint32_t kInitial = 16;
  static constexpr std::uint32_t kLeast = 1;

  void end_round(const Ack& ack);
  void grow(Duration delay, Duration queueing);
  void shrink(Fine by);
  Fine part(std::uint64_t of, std::uint64_t whole) const {
    return static_cast<Fine>(fine_ * of / whole);
  }
  void settle(Fine next);
  void note_ineffective(Duration delay, Duration least);
  Duration target() const;
  // A round trip takes so long at least. Who always looks late has seen none as short as it was.
  Duration shortest(Duration least) const { return may_be_short_ ? Duration(0) : least; }

  Fine limit_;                           // never more
  Fine fine_;                            // the window, in parts of a packet
  std::uint32_t window_;                 // whole packets of it
  std::uint32_t acked_ = 0;              // this round
  std::uint32_t lost_ = 0;               // this round
  std::uint8_t ineffective_rounds_ = 0;  // in a row: shrinking did not help
  bool was_limiting_ = false;            // this round: two thirds of the window were in flight
  // In one byte: of an idle peer's 1024.
  bool slow_start_ : 1 = true;
  bool may_be_short_ : 1 = false;           // shorter than the target
  bool lossy_ : 1 = false;                  // the last round: more was lost than chance explains
  Duration round_least_ = Duration::max();  // this round's least sample
  std::uint64_t round_end_ = 0;             // the round is over when this number is acked
  Duration base_{};                         // of a path longer than the target; else 0
};

}  // namespace pullman::reliability
