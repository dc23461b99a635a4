// Memory that peers may hold here beyond their own shares. A peer borrows from it as it needs, at
// most as much as it leaves (dynamic thresholds, Choudhury and Hahne 1998): half of it if it
// borrows alone, an eighth each if seven do. So however many peers flood it something is left for
// the next, and each has its own share besides. Knows which peers are blocked (wire.md 4.13), and
// tells when there may be something for them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "pullman/types.h"

namespace pullman::message {

// A peer's index among the blocked ones.
using BlockedPlace = std::uint32_t;
inline constexpr BlockedPlace kNotBlocked = 0xFFFF'FFFF;

class Reserve {
 public:
  explicit Reserve(std::uint64_t bytes) : left_(bytes) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  // Returns how much a peer that has borrowed `lent` may borrow in all.
  std::uint64_t max_for(std::uint64_t lent) const {
    return left_ > lent ? lent + (left_ - lent) / 2 : lent;
  }
  void lend(std::uint64_t amount) {
    PULLMAN_DCHECK(amount <= left_);
    left_ -= amount;
  }
  void take_back(std::uint64_t amount) {
    left_ += amount;
    came_back_ = came_back_ || amount != 0;
  }
  std::uint64_t left() const { return left_; }

  // Adds a peer that is not blocked. `place` is kept up to date from then on, so it must not move.
  void add_blocked(PeerId peer, BlockedPlace& place) {
    PULLMAN_DCHECK(place == kNotBlocked);
    blocked_.push_back({peer, &place});
    place = static_cast<BlockedPlace>(blocked_.size() - 1);
    came_back_ = true;
  }
  void remove_blocked(BlockedPlace& place) {
    if (place == kNotBlocked) return;
    PULLMAN_DCHECK(blocked_[place].place == &place);
    blocked_[place] = blocked_.back();
    *blocked_[place].place = place;
    blocked_.pop_back();
    place = kNotBlocked;
  }
  bool any_blocked() const { return !blocked_.empty(); }
  // Calls visit(peer) for each, which must not add or remove any.
  template <typename Visit>
  void for_each_blocked(Visit&& visit) const {
    for (const Blocked& blocked : blocked_) visit(blocked.peer);
  }

  // Whether a peer is blocked and something has come back since the last call that returned true.
  bool take_news() {
    if (blocked_.empty() || !came_back_) return false;
    came_back_ = false;
    return true;
  }

 private:
  struct Blocked {
    PeerId peer;
    BlockedPlace* place;
  };

  std::uint64_t left_;
  bool came_back_ = false;
  std::vector<Blocked> blocked_;
};

// What one peer may use (allowance.h).
struct Terms {
  std::uint64_t share;   // for this peer alone
  std::uint64_t window;  // that it may use before it is told of more
  Reserve& reserve;
};

}  // namespace pullman::message
