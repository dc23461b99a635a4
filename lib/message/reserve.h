// Memory that peers may hold here beyond their own shares: a peer that needs it borrows it, at most
// as much as it leaves (dynamic thresholds, Choudhury and Hahne 1998): alone half of it, as
// one of seven an eighth each; so however many flood it something is left for the next, and each
// has its own share besides. Knows which peers are blocked (wire.md 4.13), and says when there may
// be something for them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "pullman/types.h"

namespace pullman::message {

// Where a peer is among those that are blocked.
using BlockedPlace = std::uint32_t;
inline constexpr BlockedPlace kNotBlocked = 0xFFFF'FFFF;

class Reserve {
 public:
  explicit Reserve(std::uint64_t bytes) : left_(bytes) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  // What a peer that has borrowed so much may borrow in all.
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

  // `place`, of one that is not, says from now on where it is; it stays at its address.
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
  // Calls visit(peer) for each; none is added or removed meanwhile.
  template <typename Visit>
  void for_each_blocked(Visit&& visit) const {
    for (const Blocked& blocked : blocked_) visit(blocked.peer);
  }

  // Something has come back since this was asked, and somebody may be waiting for it.
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

// What one peer may have (allowance.h).
struct Terms {
  std::uint64_t share;   // for itself alone, whatever others do
  std::uint64_t window;  // that it may use before it is told of more
  Reserve& reserve;
};

}  // namespace pullman::message
