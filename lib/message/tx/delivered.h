// Which of our messages the peer has, as its BYE tells (wire.md 4.9).
#pragma once

#include <bit>
#include <cstddef>
#include <span>

#include "base/sequence.h"
#include "message/id_window.h"
#include "wire/frame.h"

namespace pullman::message {

class Delivered {
 public:
  // `next`: the id of the next message that we would send.
  Delivered(const wire::Frame& bye, MessageId next)
      : floor_(expand(bye.id, next)), bye_(bye), bitmap_(wire::bye_bitmap(bye)) {}

  bool contains(MessageId id) const {
    if (id < floor_) return !is_excepted(id);
    if (id == floor_) return false;
    const MessageId at = id - floor_ - 1;
    return at / 64 < words() && (wire::sack_word(bitmap_, at / 64) >> at % 64 & 1) != 0;
  }
  // Returns one past the highest id in it.
  MessageId end() const {
    if (words() == 0) return floor_;
    const auto last = static_cast<unsigned>(std::bit_width(wire::sack_word(bitmap_, words() - 1)));
    return floor_ + 1 + 64 * (words() - 1) + last;
  }

 private:
  std::size_t words() const { return bitmap_.size() / 8; }
  bool is_excepted(MessageId id) const {
    for (std::size_t at = 0; at < bye_.limit; ++at) {
      if (wire::bye_excepted(bye_, at) == low32(id)) return true;
    }
    return false;
  }

  MessageId floor_;  // all below it, except the excepted ones
  const wire::Frame& bye_;
  std::span<const std::byte> bitmap_;
};

}  // namespace pullman::message
