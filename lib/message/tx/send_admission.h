// Decides whether a message to one peer may be sent now: its id must be in the window that the
// receiver remembers (wire.md 4.3), and the receiver's allowance must cover it (wire.md 4.6). Gives
// out ids, spends the allowance, and is told which messages have begun to arrive.
//
// Does not know packets, nor where the bytes of messages are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "message/allowance.h"
#include "message/id_window.h"
#include "wire/kind.h"

namespace pullman::message {

class SendAdmission {
 public:
  explicit SendAdmission(MessageId first) : next_id_(first) { begun_.start(first); }

  // The peer's limits are known.
  void handle_hello(std::uint64_t allowance, std::uint32_t eager_bytes) {
    knows_peer_ = true;
    allowance_.raise(allowance, allowance);
    reserved_ = reserved_for_envelopes(allowance);
    eager_bytes_ = eager_bytes;
  }
  void handle_allowance(std::uint64_t limit, std::uint64_t whole_limit) {
    allowance_.raise(limit, whole_limit);
  }

  bool knows_peer() const { return knows_peer_; }
  std::uint32_t eager_bytes() const { return eager_bytes_; }
  std::uint64_t limit() const { return allowance_.limit(); }
  MessageId next_id() const { return next_id_; }

  // Whether the window has an id for the next message. `oldest`: the id of the oldest unfinished
  // message, or next_id() if there is none.
  bool has_id(MessageId oldest) const {
    return begun_.contains(next_id_) && next_id_ - oldest < kIdsToOldest;
  }

  // Whether the allowance covers the whole message, or its eager bytes.
  bool affords(std::uint8_t kind, std::uint64_t total) const {
    return affords_whole(kind, total) || affords_from_reserve(kind, total);
  }
  // The same without the part that is reserved for envelopes.
  bool affords_whole(std::uint8_t kind, std::uint64_t total) const {
    return allowance_.affords_whole(charge_for(kind, total), reserved_ * kMessageCharge);
  }
  bool affords_envelope(std::uint8_t kind) const {
    return allowance_.affords(charge_of_envelope(kind));
  }

  // Returns the id of the next message, for which there is allowance.
  MessageId admit(std::uint8_t kind, std::uint64_t total) {
    allowance_.spend(charge_for(kind, total));
    return next_id_++;
  }
  MessageId admit_envelope(std::uint8_t kind) {
    allowance_.spend(charge_of_envelope(kind));
    return next_id_++;
  }

  // Returns the full id of a message that the peer's frame names; nothing if none has had it.
  std::optional<MessageId> id_of(std::uint32_t id_low) const {
    const MessageId id = expand(id_low, next_id_);
    return id < next_id_ ? std::optional(id) : std::nullopt;
  }
  // Returns the full id in a frame of ours that has arrived.
  MessageId own_id_of(std::uint32_t id_low) const { return expand(id_low, begun_.floor()); }

  // The receiver has noted the message as begun: the window need not wait for it.
  bool has_begun(MessageId id) const { return begun_.finished(id); }
  void note_begun(MessageId id, Pool<IdBitmap>& bitmaps) {
    if (!begun_.finished(id)) begun_.finish(id, bitmaps);
  }
  // Does note_begun() for `count` consecutive ids, none of which has begun.
  void note_several_begun(MessageId first, std::uint32_t count, Pool<IdBitmap>& bitmaps) {
    begun_.finish_several(first, count, bitmaps);
  }
  // All messages with lower ids have begun.
  MessageId begun_until() const { return begun_.floor(); }
  bool have_all_begun() const { return begun_.floor() == next_id_; }

 private:
  std::uint64_t charge_for(std::uint8_t kind, std::uint64_t total) const {
    return kind == 0 ? charge_of(total, eager_bytes_) : charge_of(kind, total, eager_bytes_);
  }
  // Messages that are never announced may use the part reserved for envelopes.
  bool affords_from_reserve(std::uint8_t kind, std::uint64_t total) const {
    return knows_peer_ && !wire::may_be_announced(kind, total) &&
           allowance_.affords(charge_for(kind, total));
  }

  IdWindow begun_;  // messages known to have begun to arrive
  MessageId next_id_;
  AllowanceSpent allowance_;
  std::uint32_t eager_bytes_ = kLeastEager;
  std::uint16_t reserved_ = 0;  // part of the allowance for envelopes, in kMessageCharge
  bool knows_peer_ = false;     // whether its limits are known
};

}  // namespace pullman::message
