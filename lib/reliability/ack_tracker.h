// The receiving half of a link: records which packets have arrived and decides when an ACK is due.
//
// Keeps a cumulative number and, only while there are gaps, a bitmap of 4096 packets beyond it.
// Does not wait for numbers that the sender has settled (acknowledged or abandoned: below the floor
// that its packets carry). ACK policy (wire.md 6): an ACK is piggybacked on a packet that leaves
// anyway; it leaves alone after the ACK delay, after N packets, or after one that asks for it; it
// leaves at once for a new gap, a duplicate or a PING. Does not know what the packets carry, nor
// how an ACK is sent. Reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bitmap.h"
#include "base/pool.h"
#include "base/sequence.h"
#include "base/time.h"
#include "wire/header.h"

namespace pullman::reliability {

using ArrivalBitmap = SlidingBitmap<wire::kWindow>;

enum class AckNeed : std::uint8_t {
  kNone,     // everything received has been acknowledged
  kDelayed,  // may wait until the ACK delay is over for a packet to be piggybacked on
  kEnough,   // asked for, or due after N packets: this turn, or on a packet about to leave
  kNow,      // must leave this turn
};

enum class Arrival : std::uint8_t {
  kNew,        // not seen before: process it, then note() it
  kDuplicate,  // seen or settled before
  kOutside,    // beyond the window, or there is no bitmap to record it: treated as lost
};

class AckTracker {
 public:
  AckTracker(Pool<ArrivalBitmap>& bitmaps, std::uint32_t packets_per_ack)
      : bitmaps_(bitmaps), packets_per_ack_(static_cast<std::uint16_t>(packets_per_ack)) {}
  ~AckTracker() { release_bitmap(); }
  AckTracker(const AckTracker&) = delete;
  AckTracker& operator=(const AckTracker&) = delete;

  // Sets the peer's first packet number.
  void start(PacketNumber first) { next_ = highest_ = first; }

  PacketNumber number_of(const wire::PacketHeader& header) const {
    return expand(header.number, next_);
  }
  Arrival judge(const wire::PacketHeader& header) const {
    if (is_next(header)) [[likely]]
      return Arrival::kNew;
    return judge_other(header);
  }

  // Records that a packet judged kNew was processed. The NIC had not been polled for `gap` before.
  void note(Instant now, const wire::PacketHeader& header, wire::PollGap gap = {}) {
    if (is_next(header)) [[likely]]
      return note_run(now, header, 1, gap);
    note_other(now, header, gap);
  }
  // Does note() for each of `count` packets in order, from next() to `last`, while there is no gap.
  // Their floors did not fall. asked_beyond_gap_ needs no change, since it is set only in a gap.
  void note_run(Instant now, const wire::PacketHeader& last, std::uint32_t count,
                wire::PollGap gap = {}) {
    PULLMAN_CHECK(!has_gap() && number_of(last) + 1 == next_ + count);
    next_ = highest_ = next_ + count;
    highest_at_ = now;
    set_gap(gap);
    unacked_ = static_cast<std::uint16_t>(unacked_ + count);
    const bool enough = unacked_ >= packets_per_ack_ || last.has(wire::kFlagAckSoon);
    need_ = std::max(need_, enough ? AckNeed::kEnough : AckNeed::kDelayed);
  }
  // Records a packet judged kDuplicate. It is acknowledged at once, since the sender may lack an
  // ACK. If its number had been settled before it arrived, its frames were retransmitted too soon,
  // and it counts as late; otherwise the network duplicated it.
  void note_duplicate(const wire::PacketHeader& header) {
    note_copy(header);
    need_ = AckNeed::kNow;
  }
  // The same without an ACK.
  void note_copy(const wire::PacketHeader& header) {
    if (number_of(header) < missed_until_) ++late_;
  }
  // Records a packet whose frames had all arrived before: they were retransmitted without need.
  void note_late() {
    ++late_;
    need_ = AckNeed::kNow;
  }
  void ask_now() { need_ = AckNeed::kNow; }

  AckNeed need() const { return need_; }
  bool has_gap() const { return bitmap_ != nullptr; }
  PacketNumber next() const { return next_; }

  // Piggybacks the cumulative ACK on a packet with this header. Without a gap that reports all
  // arrivals, so no ACK is due any more.
  void piggyback(Instant now, wire::PacketHeader& header);

  // Fills in the header of an ACK that leaves alone, and writes its SACK frame if there are gaps.
  // Returns the frame's length in bytes. `out` has room for kMaxSackBytes.
  std::size_t write_alone(Instant now, wire::PacketHeader& header, std::byte* out);
  static constexpr std::size_t kMaxSackBytes = 8 + wire::kWindow / 8 + 8;

 private:
  // Packets per ACK while there is a gap, when each ACK may prove more packets lost.
  static constexpr std::uint16_t kPerAckOfGap = 4;

  // Returns true if the packet is in order and there is no gap, so that its floor says nothing new.
  bool is_next(const wire::PacketHeader& header) const {
    if (bitmap_ != nullptr) [[unlikely]]
      return false;
    return header.number == low32(next_);
  }
  Arrival judge_other(const wire::PacketHeader& header) const;
  void note_other(Instant now, const wire::PacketHeader& header, wire::PollGap gap);
  void set_gap(wire::PollGap gap) { poll_gap_ = static_cast<std::uint8_t>(gap) & 0x0F; }
  void advance(PacketNumber floor);
  void find_need(bool new_gap, bool asked);
  void release_bitmap();
  std::uint16_t hold_at(Instant now) const;
  void settled() {
    need_ = AckNeed::kNone;
    unacked_ = 0;
  }

  Pool<ArrivalBitmap>& bitmaps_;
  PacketNumber next_ = 0;            // everything below has arrived or is settled
  PacketNumber highest_ = 0;         // one past the highest number that arrived
  Instant highest_at_{};             // when highest_ - 1 arrived
  PacketNumber missed_until_ = 0;    // one past the highest number settled before it arrived
  ArrivalBitmap* bitmap_ = nullptr;  // arrivals beyond next_; null if there are none
  AckNeed need_ = AckNeed::kNone;
  // A packet above a gap asked for its ACK, and the gap is open.
  std::uint8_t asked_beyond_gap_ : 1 = 0;
  std::uint8_t poll_gap_ : 4 = 0;  // the wire::PollGap before highest_ - 1 was received
  std::uint16_t late_ = 0;         // see PacketHeader::late
  std::uint16_t unacked_ = 0;      // new packets since the last ACK; the window bounds them
  std::uint16_t packets_per_ack_;
};

}  // namespace pullman::reliability
