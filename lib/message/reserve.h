// Memory that peers may hold here beyond their own shares: who needs it borrows it. One borrows at
// most as much as it leaves (dynamic thresholds, Choudhury and Hahne 1998): alone half of it, as
// one of seven an eighth each; so however many flood it something is left for the next, and each
// has its own share besides. Knows which peers are blocked, and says when there is something for
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "pullman/types.h"

namespace pullman::message {

class Reserve {
 public:
  explicit Reserve(std::uint64_t bytes) : left_(bytes) {}
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  // Who has borrowed so much may have so much in all.
  std::uint64_t most_for(std::uint64_t lent) const {
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

  void add_blocked(PeerId peer) {
    blocked_.push_back(peer);
    came_back_ = true;
  }
  bool any_blocked() const { return !blocked_.empty(); }
  // Calls visit(peer) for each; those of which it says false are blocked no longer.
  template <typename Visit>
  void for_each_blocked(Visit&& visit) {
    std::erase_if(blocked_, [&](PeerId peer) { return !visit(peer); });
  }

  // Something has come back since this was asked, and somebody may be waiting for it.
  bool take_news() {
    if (blocked_.empty() || !came_back_) return false;
    came_back_ = false;
    return true;
  }

 private:
  std::uint64_t left_;
  bool came_back_ = false;
  std::vector<PeerId> blocked_;
};

// What one peer may have (allowance.h).
struct Terms {
  std::uint64_t share;   // for itself alone, whatever others do
  std::uint64_t window;  // that it may use before it is told of more
  Reserve& reserve;
};

}  // namespace pullman::message
