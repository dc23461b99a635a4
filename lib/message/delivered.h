// Which of our messages the other end has, as its BYE says (wire.md 4.9).
#pragma once

#include "base/sequence.h"
#include "message/id_window.h"
#include "wire/frame.h"

namespace pullman::message {

class Delivered {
 public:
  // `next`: the id that our next message would have.
  Delivered(const wire::Frame& bye, MessageId next) : floor_(expand(bye.id, next)), bye_(bye) {}

  bool contains(MessageId id) const {
    if (id <= floor_) return id < floor_;
    const MessageId at = id - floor_ - 1;
    return at / 64 < words() && (wire::sack_word(bye_.data, at / 64) >> at % 64 & 1) != 0;
  }
  // One past the highest there is.
  MessageId end() const {
    if (words() == 0) return floor_;
    const auto last =
        static_cast<unsigned>(std::bit_width(wire::sack_word(bye_.data, words() - 1)));
    return floor_ + 1 + 64 * (words() - 1) + last;
  }

 private:
  std::size_t words() const { return bye_.data.size() / 8; }

  MessageId floor_;  // all below
  const wire::Frame& bye_;
};

}  // namespace pullman::message
