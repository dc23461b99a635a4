// Memory for messages that nobody has posted a receive for: what may be charged to one peer.
//
// Each message costs its sender kMessageCharge plus the bytes that may have to be held for it. The
// receiver returns the charge when the message is matched. A sender without allowance waits; one
// that overdraws is refused. All peers' allowances together fit Config::unexpected_bytes
// (wire.md 4.6). Counts are of everything ever charged, so a lost or repeated ALLOWANCE frame does
// no harm.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pullman::message {

inline constexpr std::uint64_t kMessageCharge = 128;  // what remembering a message costs
inline constexpr std::uint64_t kLeastAllowance = 4096;
inline constexpr std::uint32_t kLeastEager = 1024;

constexpr std::uint64_t charge_of(std::uint64_t total, std::uint64_t eager_bytes) {
  return kMessageCharge + std::min(total, eager_bytes);
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

// The receiver's side.
class AllowanceGranted {
 public:
  explicit AllowanceGranted(std::uint64_t share) : share_(share), told_(share) {}

  bool covers(std::uint64_t charge) const { return charged_ + charge <= share_ + returned_; }
  void charge(std::uint64_t amount) { charged_ += amount; }
  void give_back(std::uint64_t amount) { returned_ += amount; }

  // A quarter of the share has come back unannounced: tell the sender.
  bool worth_telling() const { return share_ + returned_ - told_ >= share_ / 4; }
  std::uint64_t tell() { return told_ = share_ + returned_; }

  std::uint64_t share() const { return share_; }
  std::uint64_t outstanding() const { return charged_ - returned_; }

 private:
  std::uint64_t share_;         // may be outstanding at once
  std::uint64_t told_;          // the limit the sender knows
  std::uint64_t charged_ = 0;   // ever
  std::uint64_t returned_ = 0;  // ever
};

}  // namespace pullman::message
