// What may be under way to one neighbour: a bounded number of packets, of which each origin has its
// share when it is half full. Also knows whether the neighbour takes what it is sent. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/time.h"
#include "nic/address.h"

namespace pullman::relay {

class Share {
 public:
  static constexpr std::size_t kMax = 256;

  // Returns whether another packet of that origin may be sent. An origin that sends more than
  // others leaves room for those that have little under way, and for a new one.
  bool admits(const nic::Address& origin) const {
    if (under_way_ < kMax / 2) return true;
    return under_way_ < kMax && count_of(origin) < kMax / (origins_.size() + 1);
  }

  void begin(Instant now, const nic::Address& origin) {
    const auto found = find(origin);
    if (found == origins_.end()) {
      origins_.push_back({origin, 1});
    } else {
      ++found->count;
    }
    if (under_way_++ == 0) progress_ = now;
  }
  void end(Instant now, const nic::Address& origin) {
    progress_ = now;
    --under_way_;
    const auto found = find(origin);
    if (--found->count == 0) origins_.erase(found);
  }

  std::size_t under_way() const { return under_way_; }
  // Returns whether nothing that is under way has arrived for that long.
  bool stalled(Instant now, Duration patience) const {
    return under_way_ != 0 && now - progress_ > patience;
  }

 private:
  struct Origin {
    nic::Address address;
    std::size_t count = 0;
  };

  std::vector<Origin>::iterator find(const nic::Address& origin) {
    return std::find_if(origins_.begin(), origins_.end(),
                        [&](const Origin& one) { return one.address == origin; });
  }
  std::size_t count_of(const nic::Address& origin) const {
    const auto found = std::find_if(origins_.begin(), origins_.end(),
                                    [&](const Origin& one) { return one.address == origin; });
    return found == origins_.end() ? 0 : found->count;
  }

  std::size_t under_way_ = 0;
  Instant progress_{};           // when one arrived last, or the first was sent
  std::vector<Origin> origins_;  // those with packets under way, at most kMax
};

}  // namespace pullman::relay
