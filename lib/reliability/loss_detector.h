// Tells lost packets from late ones (RACK: RFC 8985; RFC 9002 section 6.1.2).
//
// A packet is lost when a later packet of its own channel has arrived and more than a round trip
// plus a reordering window has passed since it was sent. The two channels reorder against each
// other all the time, so packets of the other channel prove nothing. Nothing is ever judged lost by
// a timer alone: a timeout only asks (link.h), the answer is the evidence. The reordering window is
// a quarter of the least round trip; it doubles whenever a retransmission proves spurious. Reads no
// clock, owns no packet.
#pragma once

#include <algorithm>
#include <array>

#include "base/time.h"
#include "channel/packet.h"
#include "reliability/rtt.h"
#include "reliability/send_window.h"

namespace pullman::reliability {

class LossDetector {
 public:
  void note_acked(const Packet& packet) {
    auto& highest = acked_until_[static_cast<std::size_t>(packet.channel)];
    highest = std::max(highest, packet.number + 1);
  }

  void note_spurious() { patience_ = std::min(patience_ * 2, kMostPatience); }

  // Removes the lost packets from the window and appends them to `lost`, oldest first.
  void detect(Instant now, const Rtt& rtt, SendWindow& window, channel::PacketQueue& lost);

  // When detect() would find the next one lost without further acks; kNever if there is none.
  Instant next_due() const { return next_due_; }

 private:
  static constexpr int kMostPatience = 16;
  static constexpr Duration kLeastReordering = std::chrono::microseconds(10);

  std::array<PacketNumber, channel::kChannels> acked_until_{};  // one past the highest acked
  Instant next_due_ = kNever;
  int patience_ = 1;  // times a quarter of the least round trip
};

}  // namespace pullman::reliability
