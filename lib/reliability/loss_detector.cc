#include "reliability/loss_detector.h"

namespace pullman::reliability {

void LossDetector::detect(Instant now, const Rtt& rtt, SendWindow& window,
                          channel::PacketQueue& lost) {
  next_due_ = kNever;
  const PacketNumber end = std::min(std::max(acked_until_[0], acked_until_[1]), window.next());
  if (window.in_flight() == 0 || window.floor() >= end) return;
  const Duration reordering = std::max(rtt.least() / 4, kLeastReordering) * patience_;
  const Duration patience = std::max(rtt.latest(), rtt.smoothed()) + reordering;
  for (PacketNumber n = window.floor(); n < end; ++n) {
    Packet* packet = window.find(n);
    if (packet == nullptr || n >= acked_until_[static_cast<std::size_t>(packet->channel)]) continue;
    const Instant due = packet->sent_at + patience;
    if (due > now) {
      next_due_ = std::min(next_due_, due);
      continue;
    }
    window.remove(*packet);
    packet->state = PacketState::kLost;
    lost.push_back(*packet);
  }
}

}  // namespace pullman::reliability
