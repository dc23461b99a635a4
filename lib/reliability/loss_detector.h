// Tells lost packets from late ones (RACK: RFC 8985; RFC 9002 section 6.1.2).
//
// A packet is lost if a later packet of its own channel has arrived and more than an RTT plus a
// reordering window has passed since it was sent. The two channels reorder against each other all
// the time, so packets of the other channel prove nothing. No packet is declared lost by a timer
// alone: a timeout only sends a probe (link.h), whose ACK is the evidence. The reordering window is
// a quarter of the minimum RTT. It doubles when a retransmission proves spurious, once per round
// trip, and returns to a quarter after 16 recoveries without one (RFC 8985 section 6.2, step 4).
// Reads no clock, owns no packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/time.h"
#include "channel/packet.h"
#include "reliability/rtt.h"
#include "reliability/send_window.h"

namespace pullman::reliability {

class LossDetector {
 public:
  // Records that the packet before `end`, one of that channel, has arrived.
  void note_acked(channel::ChannelKind channel, PacketNumber end) {
    auto& highest = acked_until_[static_cast<std::size_t>(channel)];
    highest = std::max(highest, end);
  }

  // Records a retransmission.
  void note_resent(Instant now) {
    ++suspects_;
    resent_at_ = now;
  }

  // The peer has reported `packets` more late packets. Returns how many of them count as spurious
  // retransmissions, at most as many as there were lately; those widen the reordering window. The
  // others were duplicated by the network.
  std::uint32_t note_late(Instant now, const Rtt& rtt, std::uint32_t packets);

  // Removes the lost packets from the window and appends them to `lost`, oldest first.
  void detect(Instant now, const Rtt& rtt, SendWindow& window, channel::PacketQueue& lost);

  // Returns when detect() will find the next lost packet without further ACKs; kNever if none.
  Instant next_due() const { return next_due_; }

 private:
  void begin_recovery(PacketNumber next);

  static constexpr std::int16_t kMaxPatience = 16;
  static constexpr int kPersistence = 16;  // recoveries until the reordering window returns
  // RTTs for which a retransmission may prove spurious. To declare a packet lost takes up to
  // 1 + 16 / 4 of them; no reordering window covers an original that arrives much later.
  static constexpr int kSuspicion = 8;
  static constexpr Duration kLeastReordering = std::chrono::microseconds(10);

  std::array<PacketNumber, channel::kChannels> acked_until_{};  // one past the highest acked
  Instant next_due_ = kNever;
  PacketNumber recovery_end_ = 0;  // a loss from this number on begins another recovery
  Instant risen_at_{};             // when patience_ last rose
  Instant resent_at_{};            // the time of the last retransmission
  std::uint32_t suspects_ = 0;     // recent retransmissions that may prove spurious
  std::int16_t patience_ = 1;      // the reordering window in quarters of the minimum RTT
  std::int16_t recoveries_ = 0;    // begun since patience_ last changed or was confirmed
};

}  // namespace pullman::reliability
