#include "reliability/ack_tracker.h"

#include <algorithm>

#include "base/check.h"
#include "wire/frame.h"

namespace pullman::reliability {

Arrival AckTracker::judge_other(const wire::PacketHeader& header) const {
  const PacketNumber number = number_of(header);
  if (number < next_) return Arrival::kDuplicate;
  const PacketNumber floor = number - header.floor_distance;
  if (number - std::max(floor, next_) >= wire::kWindow) return Arrival::kOutside;
  if (bitmap_ != nullptr) {
    return number < highest_ && bitmap_->test(number) ? Arrival::kDuplicate : Arrival::kNew;
  }
  const bool opens_gap = number != std::max(floor, next_);
  return opens_gap && bitmaps_.in_use() == bitmaps_.capacity() ? Arrival::kOutside : Arrival::kNew;
}

// Decides when an ACK leaves alone (wire.md 6.2).
void AckTracker::find_need(bool new_gap, bool asked) {
  const std::uint32_t enough =
      has_gap() ? std::min(packets_per_ack_, kPerAckOfGap) : packets_per_ack_;
  // A packet that asks for its ACK asks for all packets before it, too.
  const bool closes = asked_beyond_gap_ != 0 && !has_gap();
  asked_beyond_gap_ = (asked_beyond_gap_ != 0 || asked) && has_gap() ? 1 : 0;
  asked = asked || closes;
  AckNeed need = AckNeed::kDelayed;
  if (unacked_ >= enough || asked) need = has_gap() ? AckNeed::kNow : AckNeed::kEnough;
  if (new_gap) need = AckNeed::kNow;
  need_ = std::max(need_, need);
}

void AckTracker::note_other(Instant now, const wire::PacketHeader& header, wire::PollGap gap) {
  const PacketNumber number = number_of(header);
  advance(number - header.floor_distance);
  const bool new_gap = number > std::max(highest_, next_);
  if (number == next_) {
    ++next_;
    if (bitmap_ != nullptr) next_ = bitmap_->pop_run(next_);
  } else {
    if (bitmap_ == nullptr) bitmap_ = bitmaps_.take();
    PULLMAN_CHECK(bitmap_ != nullptr);
    bitmap_->set(number);
  }
  if (number >= highest_) {
    highest_ = number + 1;
    highest_at_ = now;
    set_gap(gap);
  }
  if (bitmap_ != nullptr && next_ >= highest_) release_bitmap();
  ++unacked_;
  find_need(new_gap, header.has(wire::kFlagAckSoon));
}

// Numbers below the sender's floor are settled, whether they arrived or not (wire.md 3.3).
void AckTracker::advance(PacketNumber floor) {
  if (floor <= next_) return;
  if (bitmap_ != nullptr) {
    const PacketNumber end = std::min(floor, next_ + wire::kWindow);
    for (PacketNumber n = next_; n < end; ++n) {
      if (!bitmap_->test(n)) missed_until_ = n + 1;
      bitmap_->clear(n);
    }
    if (end < floor) missed_until_ = floor;
    next_ = floor < highest_ ? bitmap_->pop_run(floor) : floor;
    if (next_ >= highest_) release_bitmap();
  } else {
    next_ = missed_until_ = floor;
  }
  highest_ = std::max(highest_, next_);
}

void AckTracker::release_bitmap() {
  if (bitmap_ == nullptr) return;
  bitmap_->reset();
  bitmaps_.give_back(bitmap_);
  bitmap_ = nullptr;
}

std::uint16_t AckTracker::hold_at(Instant now) const {
  const auto units = static_cast<std::uint64_t>((now - highest_at_).count()) / wire::kHoldUnitNs;
  return units < wire::kHoldUnknown ? static_cast<std::uint16_t>(units) : wire::kHoldUnknown;
}

void AckTracker::piggyback(Instant now, wire::PacketHeader& header) {
  header.flags |= wire::kFlagAck;
  header.cumulative = low32(next_);
  header.late = late_;
  header.poll_gap = static_cast<wire::PollGap>(poll_gap_);
  header.hold = wire::kHoldUnknown;
  if (!has_gap()) [[likely]] {
    header.hold = hold_at(now);
    settled();
  }
}

std::size_t AckTracker::write_alone(Instant now, wire::PacketHeader& header, std::byte* out) {
  piggyback(now, header);
  header.hold = hold_at(now);
  settled();
  if (!has_gap()) return 0;
  const PacketNumber first = next_ & ~PacketNumber{63};
  const auto words = static_cast<std::size_t>((highest_ - first + 63) / 64);
  const std::size_t head = wire::put_sack(out, first, words);
  for (std::size_t w = 0; w < words; ++w) {
    const PacketNumber at = first + w * 64;
    // If the window is not aligned to 64, its first and last numbers share a word of the bitmap.
    std::uint64_t bits = bitmap_->word(at);
    if (w == 0) bits &= ~std::uint64_t{0} << (next_ & 63);
    if (highest_ - at < 64) bits &= (std::uint64_t{1} << (highest_ - at)) - 1;
    wire::set_sack_word(out, w, bits);
  }
  return head + words * 8;
}

}  // namespace pullman::reliability
