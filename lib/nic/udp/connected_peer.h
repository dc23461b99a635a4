// Decides which destination gets a connected socket of its own: one that many consecutive sends
// were for.
#pragma once

#include <cstdint>

#include "nic/port.h"

namespace pullman::nic::udp {

class ConnectedPeer {
 public:
  // send() was called for `to`. Returns true if it should be the connected peer from now on; the
  // caller then calls choose() if that succeeds.
  bool note(Destination to) {
    if (to == chosen_) [[likely]] {
      in_a_row_ = 0;
      return false;
    }
    if (to != latest_) in_a_row_ = 0;
    latest_ = to;
    return ++in_a_row_ >= kInARow;
  }

  void choose(Destination to) { chosen_ = to; }
  Destination chosen() const { return chosen_; }

 private:
  // Connecting the socket anew costs as much as a few sends.
  static constexpr std::uint32_t kInARow = 64;

  Destination chosen_ = kInvalidDestination;
  Destination latest_ = kInvalidDestination;
  std::uint32_t in_a_row_ = 0;  // for latest_, which is not the chosen one
};

}  // namespace pullman::nic::udp
