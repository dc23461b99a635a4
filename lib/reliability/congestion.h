// How many packets may be in flight to one peer, as far as the network is concerned.
//
// Judges once per round trip. Delay: above a target over the least round trip seen, the window
// shrinks in proportion to the excess, at most by half (Swift, SIGCOMM 2020). Loss is a weak
// signal, as datagram networks lose at random: up to 2 % of a round is ignored; beyond, the window
// shrinks by the fraction lost, at most by half. Without either it grows: doubling until the first
// reduction, then by one packet plus a sixteenth per round, and only while the window is what
// limits the sender. Does not know what the packets are, nor the receiver's credit.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace pullman::reliability {

class Congestion {
 public:
  explicit Congestion(std::uint32_t limit) : limit_(limit) {
    window_ = limit < kInitial ? limit : kInitial;
  }

  // `acked` packets have arrived; `in_flight` counts what was in flight before that. `next_number`
  // is the next packet number the link will use, `highest_acked` the highest now acked: a round
  // ends when a packet sent after its beginning is acked.
  struct Ack {
    std::uint32_t acked = 0;
    std::uint32_t in_flight = 0;
    std::uint64_t highest_acked = 0;
    std::uint64_t next_number = 0;
    Duration rtt{};    // latest sample; 0 if there is none yet
    Duration least{};  // least sample ever
  };
  void on_ack(const Ack& ack);

  void on_lost(std::uint32_t packets) { lost_ += packets; }

  // Nothing came back for a whole timeout: the network's state is unknown, start small.
  void on_timeout();

  std::uint32_t window() const { return window_; }

 private:
  static constexpr std::uint32_t kInitial = 64;
  static constexpr std::uint32_t kLeast = 4;
  // Queueing allowed above the least round trip: a host descheduled or a full receive queue on a
  // busy machine costs hundreds of microseconds without any congestion.
  static constexpr Duration kTargetQueue = std::chrono::microseconds(500);
  static constexpr int kTargetFactor = 4;

  void end_round(const Ack& ack);

  std::uint32_t limit_;          // never more
  std::uint32_t window_;         // packets
  std::uint32_t acked_ = 0;      // this round
  std::uint32_t lost_ = 0;       // this round
  std::uint64_t round_end_ = 0;  // the round is over when this number is acked
  bool was_limiting_ = false;    // this round: the window was (nearly) full
  bool slow_start_ = true;
};

}  // namespace pullman::reliability
