// Memory for unexpected messages: how much of it may be charged to one peer.
//
// Each message is charged kMessageCharge, the bytes that may have to be held for it, and the memory
// that remembers which of them have arrived; a short message is charged kShortCharge. The receiver
// returns the charge when the message is matched, except kMessageCharge, which it returns when the
// message is over: so a peer pays for everything that it makes us remember. A sender without
// allowance waits and reports it (BLOCKED); a sender that exceeds it is refused. All peers'
// allowances together fit Config::unexpected_bytes (wire.md 4.6): each peer has a share of its own
// and borrows more as it is needed (reserve.h). The counts are cumulative, so a lost or repeated
// ALLOWANCE frame does no harm.
//
// There are two limits. Messages that may be announced are sent whole up to the first limit: so a
// peer that sends to a process that does not receive fills a window, not the memory. Cheap ones,
// short messages and envelopes, may use the allowance up to the second limit.
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

// A packet has at least 576 bytes (wire.md 5.2), so chunks have at least 512, except the last of a
// message and some of a message of few packets. So at most one disjoint range per 512 bytes has to
// be remembered, which takes one Range: a 32nd of the bytes.
inline constexpr std::uint64_t kBytesPerRange = 512;
inline constexpr std::uint64_t kRangeBytes = 16;

constexpr std::uint64_t charge_of_whole(std::uint64_t held) {
  return kMessageCharge + held + held / kBytesPerRange * kRangeBytes;
}

// Returns the charge of a message.
constexpr std::uint64_t charge_of(std::uint64_t total, std::uint64_t eager_bytes) {
  if (total <= wire::kMaxShortBytes) return kShortCharge;
  return charge_of_whole(std::min(total, eager_bytes));
}

// Returns the further charge of a get, an atomic or a put with immediate data, which leaves
// something behind when its bytes are no longer held: an answer on its way, or an event (wire.md
// 4.6).
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

// Returns the charge of a message of any kind. Answers cost nothing: the peer that asked for one
// has room for it.
constexpr std::uint64_t charge_of(std::uint8_t kind, std::uint64_t total,
                                  std::uint64_t eager_bytes) {
  const wire::Class what = wire::class_of(kind);
  if (what == wire::Class::kAnswer) return 0;
  if (what == wire::Class::kMessage) return charge_of(total, eager_bytes);
  const std::uint64_t held = what == wire::Class::kAtomic ? total : std::min(total, eager_bytes);
  return charge_of_whole(held) + charge_behind(kind);
}

// Returns the charge of an envelope: for the part of the message that is kept until it is matched
// (wire.md 4.12).
constexpr std::uint64_t charge_of_envelope(std::uint8_t kind) {
  return kMessageCharge + wire::lead_bytes(kind) + charge_behind(kind);
}

// A sender reserves a part of its allowance for what costs next to nothing: envelopes, and messages
// that are not announced. So these can still be sent when other messages have used up the rest.
inline constexpr std::uint64_t kReservedPart = 16;
// Returns that reserve in units of kMessageCharge.
constexpr std::uint16_t reserved_for_envelopes(std::uint64_t share) {
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(share / kReservedPart / kMessageCharge, 65535));
}

// The sender's side.
class AllowanceSpent {
 public:
  // Whether a message that is never announced, or an envelope, may be sent.
  bool affords(std::uint64_t charge) const { return spent_ + charge <= limit_; }
  // Whether a message that could be announced instead may be sent whole.
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
  // `terms.share` is the peer's own. It is told that it may use `terms.window` more than it has
  // used, as long as the reserve can lend that.
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
  // Charges and returns the amount of a message that was never held. What is lent is repaid with
  // the next update.
  void pass(std::uint64_t amount) {
    charged_ += amount;
    returned_ += amount;
  }

  // Whether to update the sender: a quarter of the window has come back since the last update, or
  // less if the sender has next to nothing left.
  bool is_update_due() const {
    const auto left = static_cast<std::int64_t>(whole_limit_ - charged_);
    if (left > static_cast<std::int64_t>(terms_.window - terms_.window / 4) || ended_) [[likely]]
      return false;
    return may_raise(left);
  }
  // The limits that the next update tells.
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

  // Handles BLOCKED: the sender has more to send than its limit allows. Returns false if the sender
  // names a limit that it was never told.
  bool handle_blocked(std::uint64_t limit, PeerId peer) {
    if (limit > limit_) return false;
    if (limit < limit_ || ended_ || is_blocked()) return true;  // to be raised, or noted
    terms_.reserve.add_blocked(peer, blocked_);
    return true;
  }
  bool is_blocked() const { return blocked_ != kNotBlocked; }

  // The sender is gone: it may send nothing more, and gets no more updates.
  void end() {
    ended_ = true;
    limit_ = std::min(limit_, charged_);
    terms_.reserve.remove_blocked(blocked_);
    repay();
  }

  bool ended() const { return ended_; }

  std::uint64_t outstanding() const { return charged_ - returned_; }

 private:
  // Returns the bytes beyond the share that are held, or that the limit still lets arrive.
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
    // A blocked sender reports it only once per limit, so there is no later occasion to tell it of
    // a small raise.
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
  BlockedPlace blocked_ = kNotBlocked;  // whether the sender is blocked at `limit_`
  bool ended_ = false;
  std::uint64_t limit_ = 0;        // that the sender was told
  std::uint64_t whole_limit_ = 0;  // for messages that could be announced
  std::uint64_t charged_ = 0;      // cumulative
  std::uint64_t returned_ = 0;     // cumulative
  std::uint64_t lent_ = 0;         // lent by the reserve: no less than borrowed()
};

}  // namespace pullman::message
