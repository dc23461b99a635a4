// Memory for messages that nobody has posted a receive for: what may be charged to one peer.
//
// Each message costs its sender kMessageCharge, the bytes that may have to be held for it, and what
// it takes to remember which of them have come; a short one kShortCharge. The receiver returns the
// charge when the message is matched, but for kMessageCharge, which it returns when the message is
// over: so all that a peer can make us remember is paid for. A sender without allowance waits, and
// says so; one that overdraws is refused. All peers' allowances together fit
// Config::unexpected_bytes (wire.md 4.6): each has a share of its own and borrows more as it is
// needed (reserve.h). Counts are of everything ever charged, so a lost or repeated ALLOWANCE frame
// does no harm.
//
// There are two limits. Messages that may be announced leave whole up to the first: so a peer that
// sends to one that does not receive fills a window, not the memory. What costs little, short
// messages and envelopes, goes on to the second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "message/reserve.h"
#include "pullman/types.h"
#include "wire/kind.h"

namespace pullman::message {

inline constexpr std::uint64_t kMessageCharge = 256;  // an InMessage, see in_message.h
inline constexpr std::uint64_t kShortCharge = 128;    // a ShortMessage, see unexpected.h
inline constexpr std::uint64_t kLeastAllowance = 4096;
inline constexpr std::uint32_t kLeastEager = 1024;

// A packet has at least 576 bytes (wire.md 5.2), so chunks have 512, but the last of a message and
// some of a message of few packets. No more ranges than that can be apart, which take a Range for
// every 512 bytes: a 32nd.
inline constexpr std::uint64_t kBytesPerRange = 512;
inline constexpr std::uint64_t kRangeBytes = 16;

constexpr std::uint64_t charge_of_whole(std::uint64_t held) {
  return kMessageCharge + held + held / kBytesPerRange * kRangeBytes;
}

// Of a message.
constexpr std::uint64_t charge_of(std::uint64_t total, std::uint64_t eager_bytes) {
  if (total <= wire::kMaxShortBytes) return kShortCharge;
  return charge_of_whole(std::min(total, eager_bytes));
}

// What is left behind of a get, an atomic or a put with immediate data costs as much again: an
// answer on its way, or an event (wire.md 4.6).
constexpr std::uint64_t charge_behind(std::uint8_t kind) {
  switch (wire::class_of(kind)) {
    case wire::Class::kMessage:
    case wire::Class::kAnswer:
      return 0;
    case wire::Class::kPut:
      return wire::has_immediate(kind) ? kMessageCharge : 0;
    case wire::Class::kGet:
    case wire::Class::kAtomic:
      return kMessageCharge;
  }
  return 0;
}

// Of a message of any kind. Answers cost nothing: whoever asked has room for them.
constexpr std::uint64_t charge_of(std::uint8_t kind, std::uint64_t total,
                                  std::uint64_t eager_bytes) {
  const wire::Class what = wire::class_of(kind);
  if (what == wire::Class::kAnswer) return 0;
  if (what == wire::Class::kMessage) return charge_of(total, eager_bytes);
  const std::uint64_t held = what == wire::Class::kAtomic ? total : std::min(total, eager_bytes);
  return charge_of_whole(held) + charge_behind(kind);
}

// Of an envelope: what is kept of the message until it is matched (wire.md 4.12).
constexpr std::uint64_t charge_of_envelope(std::uint8_t kind) {
  return kMessageCharge + wire::lead_bytes(kind) + charge_behind(kind);
}

// A sender reserves a part of what it is allowed for what takes next to none: envelopes, and what
// is not announced. So there is something left for them when messages have used up all else.
inline constexpr std::uint64_t kReservedPart = 16;
// In units of kMessageCharge.
constexpr std::uint16_t reserved_for_envelopes(std::uint64_t share) {
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(share / kReservedPart / kMessageCharge, 65535));
}

// The sender's side.
class AllowanceSpent {
 public:
  // What is not announced, or is an envelope.
  bool affords(std::uint64_t charge) const { return spent_ + charge <= limit_; }
  // Whole what may be announced.
  bool affords_whole(std::uint64_t charge, std::uint64_t reserved) const {
    return spent_ + charge <= whole_limit_ && spent_ + charge + reserved <= limit_;
  }
  void spend(std::uint64_t charge) { spent_ += charge; }
  void raise(std::uint64_t limit, std::uint64_t whole_limit) {
    limit_ = std::max(limit_, limit);
    whole_limit_ = std::max(whole_limit_, whole_limit);
  }
  std::uint64_t limit() const { return limit_; }

 private:
  std::uint64_t spent_ = 0;
  std::uint64_t limit_ = kLeastAllowance;
  std::uint64_t whole_limit_ = kLeastAllowance;
};

// The receiver's side.
class AllowanceGranted {
 public:
  // The peer has `terms.share` for itself, and is told of `terms.window` more than it has used as
  // long as the reserve has that.
  explicit AllowanceGranted(const Terms& terms) : terms_(terms) { advertise(); }
  ~AllowanceGranted() {
    terms_.reserve.remove_blocked(blocked_);
    terms_.reserve.take_back(lent_);
  }
  AllowanceGranted(const AllowanceGranted&) = delete;
  AllowanceGranted& operator=(const AllowanceGranted&) = delete;

  bool covers(std::uint64_t charge) const { return charged_ + charge <= limit_; }
  void charge(std::uint64_t amount) { charged_ += amount; }
  void give_back(std::uint64_t amount) {
    returned_ += amount;
    if (lent_ != 0) repay();
  }
  // Both at once, of what was never held. Repaid when the sender is told next.
  void pass(std::uint64_t amount) {
    charged_ += amount;
    returned_ += amount;
  }

  // A quarter of the window has come back unannounced: tell the sender. Or less, if next to nothing
  // is left to it.
  bool is_update_due() const {
    const auto left = static_cast<std::int64_t>(whole_limit_ - charged_);
    if (left > static_cast<std::int64_t>(terms_.window - terms_.window / 4) || ended_) [[likely]]
      return false;
    return may_raise(left);
  }
  // The limits as they are told from now on.
  struct Limits {
    std::uint64_t limit = 0;
    std::uint64_t whole_limit = 0;
  };
  Limits advertise() {
    repay();
    const Limits next = next_limits();
    if (next.limit > limit_) terms_.reserve.remove_blocked(blocked_);
    limit_ = std::max(limit_, next.limit);
    whole_limit_ = std::max(whole_limit_, next.whole_limit);
    const std::uint64_t needed = borrowed();
    if (needed > lent_) terms_.reserve.lend(needed - lent_);
    lent_ = std::max(lent_, needed);
    return {limit_, whole_limit_};
  }
  std::uint64_t advertised() const { return limit_; }

  // The sender has more than it was told it may send. False: it was told no such limit.
  bool handle_blocked(std::uint64_t limit, PeerId peer) {
    if (limit > limit_) return false;
    if (limit < limit_ || ended_ || is_blocked()) return true;  // it hears of more, or was heard
    terms_.reserve.add_blocked(peer, blocked_);
    return true;
  }
  bool is_blocked() const { return blocked_ != kNotBlocked; }

  // The sender is gone: it is promised nothing, and told nothing, any more.
  void end() {
    ended_ = true;
    limit_ = std::min(limit_, charged_);
    terms_.reserve.remove_blocked(blocked_);
    repay();
  }

  bool ended() const { return ended_; }

  std::uint64_t outstanding() const { return charged_ - returned_; }

 private:
  // Of the limit, what is held or may still come, beyond the share.
  std::uint64_t borrowed() const {
    const std::uint64_t exposed = limit_ - returned_;
    return exposed > terms_.share ? exposed - terms_.share : 0;
  }
  void repay() {
    const std::uint64_t needed = borrowed();
    if (needed >= lent_) return;
    terms_.reserve.take_back(lent_ - needed);
    lent_ = needed;
  }
  Limits next_limits() const {
    const std::uint64_t most = terms_.share + terms_.reserve.max_for(lent_);
    const std::uint64_t window = terms_.window;
    return {.limit = returned_ + std::min(outstanding() + window, most),
            .whole_limit = returned_ + std::min(window, most)};
  }
  bool may_raise(std::int64_t whole_left) const {
    const Limits next = next_limits();
    // A sender that is blocked says so once at a limit: there is no later time to tell it of
    // little.
    if (is_blocked() && next.limit > limit_) return true;
    const auto sixteenth = terms_.window / kReservedPart;
    const bool few_whole = whole_left < static_cast<std::int64_t>(sixteenth);
    const bool few = limit_ - charged_ < sixteenth;
    const auto gains = [this](std::uint64_t to, std::uint64_t from, bool is_little) {
      return to >= from + (is_little ? terms_.window / 64 : terms_.window / 4);
    };
    return gains(next.whole_limit, whole_limit_, few_whole) || gains(next.limit, limit_, few);
  }

  const Terms& terms_;
  BlockedPlace blocked_ = kNotBlocked;  // at this limit
  bool ended_ = false;
  std::uint64_t limit_ = 0;        // that the sender knows
  std::uint64_t whole_limit_ = 0;  // of messages that it might announce
  std::uint64_t charged_ = 0;      // ever
  std::uint64_t returned_ = 0;     // ever
  std::uint64_t lent_ = 0;         // by the reserve: no less than borrowed()
};

}  // namespace pullman::message
