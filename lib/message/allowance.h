// Memory for messages that nobody has posted a receive for: what may be charged to one peer.
//
// Each message costs its sender kMessageCharge, the bytes that may have to be held for it, and what
// it takes to remember which of them have come. The receiver returns the charge when the message is
// matched, but for kMessageCharge, which it returns when the message is over: so all that a peer
// can make us remember is paid for. A sender without allowance waits; one that overdraws is
// refused. All peers' allowances together fit Config::unexpected_bytes (wire.md 4.6). Counts are of
// everything ever charged, so a lost or repeated ALLOWANCE frame does no harm.
//
// Where that is used up a message may still be announced: its envelope costs what is remembered of
// it, from an allowance of its own. A peer's share of that is small; what one needs beyond it, it
// borrows from a reserve that all have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/kind.h"

namespace pullman::message {

inline constexpr std::uint64_t kMessageCharge = 256;  // an InMessage, see in_message.h
inline constexpr std::uint64_t kLeastAllowance = 4096;
inline constexpr std::uint32_t kLeastEager = 1024;
inline constexpr std::uint64_t kLeastEnvelopes = 16;

// A packet has at least 576 bytes (wire.md 5.2), so chunks have 512, but the last of a message. No
// more ranges than that can be apart, which take a Range for every 512 bytes: a 32nd.
inline constexpr std::uint64_t kBytesPerRange = 512;
inline constexpr std::uint64_t kRangeBytes = 16;

constexpr std::uint64_t charge_of(std::uint64_t total, std::uint64_t eager_bytes) {
  const std::uint64_t held = std::min(total, eager_bytes);
  return kMessageCharge + held + held / kBytesPerRange * kRangeBytes;
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

// Of a message of any kind; of its envelope with no eager bytes. Answers cost nothing: who asked
// has room for them.
constexpr std::uint64_t charge_of(std::uint8_t kind, std::uint64_t total,
                                  std::uint64_t eager_bytes) {
  const wire::Class what = wire::class_of(kind);
  if (what == wire::Class::kAnswer) return 0;
  const std::uint64_t held = what == wire::Class::kAtomic ? total : eager_bytes;
  return charge_of(total, held) + charge_behind(kind);
}

// The sender's side.
class AllowanceSpent {
 public:
  bool affords(std::uint64_t charge) const { return spent_ + charge <= limit_; }
  void spend(std::uint64_t charge) { spent_ += charge; }
  void raise(std::uint64_t limit) { limit_ = std::max(limit_, limit); }

 private:
  std::uint64_t spent_ = 0;
  std::uint64_t limit_ = kLeastAllowance;
};

// What the peers of one engine may borrow beyond their shares. One borrows no more than it leaves.
class Reserve {
 public:
  explicit Reserve(std::uint64_t bytes) : left_(bytes) {}

  bool lends(std::uint64_t amount, std::uint64_t borrowed) const {
    return borrowed + 2 * amount <= left_;
  }
  void lend(std::uint64_t amount) { left_ -= amount; }
  void take_back(std::uint64_t amount) { left_ += amount; }

  std::uint64_t left() const { return left_; }

 private:
  std::uint64_t left_;
};

// The receiver's side. Without a reserve nothing is borrowed.
class AllowanceGranted {
 public:
  explicit AllowanceGranted(std::uint64_t share, Reserve* reserve = nullptr)
      : share_(share), told_(share), reserve_(reserve) {}
  ~AllowanceGranted() {
    if (borrowed_ != 0) reserve_->take_back(borrowed_);
  }
  AllowanceGranted(const AllowanceGranted&) = delete;
  AllowanceGranted& operator=(const AllowanceGranted&) = delete;

  bool covers(std::uint64_t charge) const { return charged_ + charge <= limit(); }
  void charge(std::uint64_t amount) { charged_ += amount; }
  void give_back(std::uint64_t amount) {
    returned_ += amount;
    if (borrowed_ != 0) repay();
  }

  // A quarter of the share has come back unannounced, or more can be borrowed for a sender that
  // will have used up what it has: tell it.
  bool worth_telling() const { return limit() - told_ >= share_ / 4 || may_borrow(); }
  std::uint64_t tell() {
    if (may_borrow()) {
      const std::uint64_t amount = step();
      reserve_->lend(amount);
      borrowed_ += amount;
    }
    return told_ = limit();
  }

  // The sender is gone: it is promised nothing any more.
  void end() {
    told_ = charged_;
    if (borrowed_ != 0) repay();
  }

  std::uint64_t share() const { return share_; }
  std::uint64_t outstanding() const { return charged_ - returned_; }
  std::uint64_t borrowed() const { return borrowed_; }

 private:
  // In one telling: so many messages fit a round trip.
  static constexpr std::uint64_t kMostBorrowed = 1024 * kMessageCharge;

  std::uint64_t limit() const { return share_ + returned_ + borrowed_; }
  std::uint64_t step() const { return std::min(share_, kMostBorrowed); }
  bool may_borrow() const {
    return reserve_ != nullptr && limit() - charged_ < share_ / 2 &&
           reserve_->lends(step(), borrowed_);
  }
  // Of what came back that much is not promised to the sender yet.
  void repay() {
    const std::uint64_t amount = std::min(borrowed_, limit() - told_);
    borrowed_ -= amount;
    reserve_->take_back(amount);
  }

  std::uint64_t share_;         // may be outstanding at once
  std::uint64_t told_;          // the limit the sender knows
  std::uint64_t charged_ = 0;   // ever
  std::uint64_t returned_ = 0;  // ever
  std::uint64_t borrowed_ = 0;  // beyond the share
  Reserve* reserve_;
};

}  // namespace pullman::message
