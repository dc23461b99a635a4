// The receiving half of a link: which packets have arrived, and when to say so.
//
// Keeps a cumulative number and, only while there are gaps, a bitmap of 4096 packets beyond it. A
// number the sender has settled (acked or given up: below the floor that its packets carry) is not
// waited for. ACK policy (wire.md 6): riding on what leaves anyway; alone when the ACK delay is
// over, after N packets or one that asks for it; at once at a new gap, a duplicate or a PING. Does
// not know what the packets carry, nor how an ACK is sent. Reads no clock.
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
  kNone,     // everything received has been acked
  kDelayed,  // may wait for company until the ACK delay is over
  kEnough,   // asked for, or so many packets: this turn, or with what is about to leave
  kNow,      // this turn
};

enum class Arrival : std::uint8_t {
  kNew,        // not seen before: process it, then note() it
  kDuplicate,  // seen or settled before
  kOutside,    // beyond the window, or no memory to remember it: as if it had been lost
};

class AckTracker {
 public:
  AckTracker(Pool<ArrivalBitmap>& bitmaps, std::uint32_t packets_per_ack)
      : bitmaps_(bitmaps), packets_per_ack_(static_cast<std::uint16_t>(packets_per_ack)) {}
  ~AckTracker() { release_bitmap(); }
  AckTracker(const AckTracker&) = delete;
  AckTracker& operator=(const AckTracker&) = delete;

  // The peer's first packet number.
  void start(PacketNumber first) { next_ = highest_ = first; }

  PacketNumber number_of(const wire::PacketHeader& header) const {
    return expand(header.number, next_);
  }
  Arrival judge(const wire::PacketHeader& header) const {
    if (is_next(header)) [[likely]]
      return Arrival::kNew;
    return judge_other(header);
  }

  // A packet judged kNew was processed. Nobody had polled for `gap` before it was found.
  void note(Instant now, const wire::PacketHeader& header, wire::PollGap gap = {}) {
    if (is_next(header)) [[likely]]
      return note_run(now, header, 1, gap);
    note_other(now, header, gap);
  }
  // As note() of each of `count` packets that came in order: next() was the first of them, `last`
  // is the last, and there is no gap. Their floors did not fall. Without a gap nobody has asked
  // beyond one.
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
  // A packet judged kDuplicate came: ack at once, the sender may lack an ACK. Its number was
  // settled before it arrived, so what it brought was sent again too soon; or it did arrive, and
  // the network made a copy.
  void note_duplicate(const wire::PacketHeader& header) {
    if (number_of(header) < missed_until_) ++late_;
    need_ = AckNeed::kNow;
  }
  // A packet with nothing new in it came.
  void note_late() {
    ++late_;
    need_ = AckNeed::kNow;
  }
  void ask_now() { need_ = AckNeed::kNow; }

  AckNeed need() const { return need_; }
  bool has_gap() const { return bitmap_ != nullptr; }
  PacketNumber next() const { return next_; }

  // Puts the cumulative ack into a header about to leave. It says everything, and settles the need,
  // unless there is a gap.
  void ride(Instant now, wire::PacketHeader& header);

  // Fills in the header of an ACK that leaves alone, and its SACK frame if there are gaps; returns
  // the frame's bytes. `out` has room for kMaxSackBytes.
  std::size_t write_alone(Instant now, wire::PacketHeader& header, std::byte* out);
  static constexpr std::size_t kMaxSackBytes = 8 + wire::kWindow / 8 + 8;

 private:
  // While there are gaps: each ACK may prove more packets lost.
  static constexpr std::uint16_t kPerAckOfGap = 4;

  // In order, and nothing is missing before it: no floor says more.
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
  PacketNumber missed_until_ = 0;    // one past the highest number settled that had not arrived
  ArrivalBitmap* bitmap_ = nullptr;  // arrivals beyond next_; only while there are any
  AckNeed need_ = AckNeed::kNone;
  // A packet above a gap asked for its ACK, and the gap is open.
  std::uint8_t asked_beyond_gap_ : 1 = 0;
  std::uint8_t poll_gap_ : 4 = 0;  // a wire::PollGap: before highest_ - 1 was found
  std::uint16_t late_ = 0;         // see PacketHeader::late
  std::uint16_t unacked_ = 0;      // new packets since the last ACK left; who sends too many waits
  std::uint16_t packets_per_ack_;
};

}  // namespace pullman::reliability
