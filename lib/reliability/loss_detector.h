// Tells lost packets from late ones (RACK: RFC 8985; RFC 9002 section 6.1.2).
//
// A packet is lost when a later packet of its own channel has arrived and more than a round trip
// plus a reordering window has passed since it was sent. The two channels reorder against each
// other all the time, so packets of the other channel prove nothing. Nothing is ever judged lost by
// a timer alone: a timeout only asks (link.h), the answer is the evidence. The reordering window is
// a quarter of the least round trip; it doubles when a retransmission proves spurious, once per
// round trip, and falls back after 16 recoveries without that (RFC 8985 section 6.2, step 4). Reads
// no clock, owns no packet.
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
  // Packets of that channel below `end` arrived, the last of them for certain.
  void note_acked(channel::ChannelKind channel, PacketNumber end) {
    auto& highest = acked_until_[static_cast<std::size_t>(channel)];
    highest = std::max(highest, end);
  }

  // A lost packet's body leaves again.
  void note_resent(Instant now) {
    ++suspects_;
    resent_at_ = now;
  }

  // The peer had so many packets in vain. Those that we sent again lately prove that we were
  // impatient; returns how many. The others are copies that the network made.
  std::uint32_t note_late(Instant now, const Rtt& rtt, std::uint32_t packets);

  // Removes the lost packets from the window and appends them to `lost`, oldest first.
  void detect(Instant now, const Rtt& rtt, SendWindow& window, channel::PacketQueue& lost);

  // When detect() would find the next one lost without further acks; kNever if there is none.
  Instant next_due() const { return next_due_; }

 private:
  void begin_recovery(PacketNumber next);

  static constexpr std::int16_t kMaxPatience = 16;
  static constexpr int kPersistence = 16;  // recoveries
  // Round trips in which the original of what was sent again may still come: a verdict takes up to
  // 1 + 16 / 4 of them, and what is later than that could not be waited for.
  static constexpr int kSuspicion = 8;
  static constexpr Duration kLeastReordering = std::chrono::microseconds(10);

  std::array<PacketNumber, channel::kChannels> acked_until_{};  // one past the highest acked
  Instant next_due_ = kNever;
  PacketNumber recovery_end_ = 0;  // a loss from this number on begins another recovery
  Instant risen_at_{};             // patience rose
  Instant resent_at_{};            // the last retransmission
  std::uint32_t suspects_ = 0;     // retransmissions lately that may prove spurious
  std::int16_t patience_ = 1;      // times a quarter of the least round trip
  std::int16_t recoveries_ = 0;    // begun since patience last rose or fell
};

}  // namespace pullman::reliability
