// Counts, for messages that were copied into several packets, how many of those have yet to arrive.
// Works by id; knows no packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/sequence.h"
#include "message/id_window.h"

namespace pullman::message {

class SpanningMessages {
 public:
  bool empty() const { return messages_ == 0; }

  // Adds a message that is in `packets` packets, at least two. Its id is in the window.
  void add(MessageId id, std::size_t packets) {
    std::uint8_t& left = left_[id % kIdWindow];
    PULLMAN_DCHECK(left == 0 && packets >= 2 && packets < 256);
    left = static_cast<std::uint8_t>(packets);
    ++messages_;
  }

  // One of its packets has arrived. Returns whether all have: true for a message that was not
  // added, which is in one packet. Its id is in the window, too, so no other message uses its
  // place.
  bool note_arrived(MessageId id) {
    std::uint8_t& left = left_[id % kIdWindow];
    if (left == 0) return true;
    if (--left != 0) return false;
    --messages_;
    return true;
  }

  void clear() {
    if (messages_ != 0) left_.fill(0);
    messages_ = 0;
  }

 private:
  std::array<std::uint8_t, kIdWindow> left_{};
  std::uint32_t messages_ = 0;
};

}  // namespace pullman::message
