#include "reliability/loss_detector.h"

namespace pullman::reliability {

void LossDetector::detect(Instant now, const Rtt& rtt, SendWindow& window,
                          channel::PacketQueue& lost) {
  next_due_ = kNever;
  const PacketNumber end = std::min(std::max(acked_until_[0], acked_until_[1]), window.next());
  if (window.in_flight() == 0 || window.floor() >= end) return;
  const Duration reordering = std::max(rtt.least() / 4, kLeastReordering) * patience_;
  const Duration patience = rtt.expected() + reordering;
  for (PacketNumber n = window.floor(); n < end; ++n) {
    const Packet* holder = window.holder(n);
    if (holder == nullptr || n >= acked_until_[static_cast<std::size_t>(holder->channel)]) continue;
    const Instant due = holder->sent_at + patience;
    // Packets are numbered in the order of sending, so no later one is due earlier.
    if (due > now) {
      next_due_ = due;
      return;
    }
    if (n >= recovery_end_) begin_recovery(window.next());
    Packet* packet = window.find(n);
    window.remove(*packet);
    packet->state = PacketState::kLost;
    lost.push_back(*packet);
  }
}

void LossDetector::begin_recovery(PacketNumber next) {
  recovery_end_ = next;
  if (++recoveries_ < kPersistence) return;
  recoveries_ = 0;
  patience_ = 1;
}

std::uint32_t LossDetector::note_late(Instant now, const Rtt& rtt, std::uint32_t packets) {
  if (now - resent_at_ > kSuspicion * rtt.expected()) suspects_ = 0;
  const std::uint32_t spurious = std::min(packets, suspects_);
  if (spurious == 0) return 0;
  suspects_ -= spurious;
  recoveries_ = 0;
  if (now - risen_at_ >= rtt.expected()) {
    risen_at_ = now;
    patience_ = std::min<std::int16_t>(static_cast<std::int16_t>(patience_ * 2), kMaxPatience);
  }
  return spurious;
}

}  // namespace pullman::reliability
