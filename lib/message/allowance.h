// Memory for messages that nobody has posted a receive for: what may be charged to one peer.
//
// Each message costs its sender kMessageCharge, the bytes that may have to be held for it, and what
// it takes to remember which of them have come. The receiver returns the charge when the message is
// matched, but for kMessageCharge, which it returns when the message is over: so all that a peer
// can make us remember is paid for. A sender without allowance waits; one that overdraws is
// refused. All peers' allowances together fit Config::unexpected_bytes (wire.md 4.6). Counts are of
// everything ever charged, so a lost or repeated ALLOWANCE frame does no harm.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire/kind.h"

namespace pullman::message {

inline constexpr std::uint64_t kMessageCharge = 256;  // an InMessage, see in_message.h
inline constexpr std::uint64_t kLeastAllowance = 4096;
inline constexpr std::uint32_t kLeastEager = 1024;

// A packet has at least 576 bytes (wire.md 5.2), so chunks have 512, but the last of a message and
// some of a message of few packets. No more ranges than that can be apart, which take a Range for
// every 512 bytes: a 32nd.
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

// Of a message of any kind. Answers cost nothing: who asked has room for them.
constexpr std::uint64_t charge_of(std::uint8_t kind, std::uint64_t total,
                                  std::uint64_t eager_bytes) {
  const wire::Class what = wire::class_of(kind);
  if (what == wire::Class::kAnswer) return 0;
  const std::uint64_t held = what == wire::Class::kAtomic ? total : eager_bytes;
  return charge_of(total, held) + charge_behind(kind);
}

// Of an envelope: what is kept of the message until it is matched (wire.md 4.12).
constexpr std::uint64_t charge_of_envelope(std::uint8_t kind) {
  return kMessageCharge + wire::lead_bytes(kind) + charge_behind(kind);
}

// A sender keeps a part of what it is allowed for what takes next to none: envelopes, and what is
// not announced. So there is something left for them when messages have used up all else.
inline constexpr std::uint64_t kPartKept = 16;
// In units of kMessageCharge.
constexpr std::uint16_t kept_for_envelopes(std::uint64_t share) {
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(share / kPartKept / kMessageCharge, 65535));
}

// The sender's side.
class AllowanceSpent {
 public:
  bool affords(std::uint64_t charge, std::uint64_t kept = 0) const {
    return spent_ + charge + kept <= limit_;
  }
  void spend(std::uint64_t charge) { spent_ += charge; }
  void raise(std::uint64_t limit) { limit_ = std::max(limit_, limit); }

 private:
  std::uint64_t spent_ = 0;
  std::uint64_t limit_ = kLeastAllowance;
};

// The receiver's side; `share` may be outstanding at once.
class AllowanceGranted {
 public:
  explicit AllowanceGranted(std::uint64_t share) : limit_(share), told_(share) {}

  bool covers(std::uint64_t charge) const { return charged_ + charge <= limit_; }
  void charge(std::uint64_t amount) { charged_ += amount; }
  void give_back(std::uint64_t amount) { limit_ += amount; }

  // A quarter of the share has come back unannounced: tell the sender. Or less, if all he has left
  // is of what he keeps for envelopes.
  bool worth_telling(std::uint64_t share) const {
    const std::uint64_t back = limit_ - told_;
    const bool is_little_left = told_ - charged_ < share / kPartKept;
    return back >= (is_little_left ? share / 64 : share / 4);
  }
  std::uint64_t tell() { return told_ = limit_; }

  std::uint64_t outstanding(std::uint64_t share) const { return charged_ + share - limit_; }

 private:
  std::uint64_t limit_;        // of what may ever be charged: the share and what was given back
  std::uint64_t told_;         // the limit the sender knows
  std::uint64_t charged_ = 0;  // ever
};

}  // namespace pullman::message
