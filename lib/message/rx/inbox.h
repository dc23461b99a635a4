// The receiving side of one peer's messages: reassembly, exactly once, turns in message-id order.
//
// Bytes are placed as they come (placement.h); only matching waits for earlier messages. A message
// that is matched when its first byte arrives is written straight into the receive's buffer; what
// comes before its match is held within the peer's allowance. What peers do to regions is the
// RmaTarget's to decide. Does not know packets, links or time. Finishes receives itself; asks for
// GRANT and ALLOWANCE frames through has_frames() / write_frames().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <utility>

#include "base/pool.h"
#include "base/slab.h"
#include "message/allowance.h"
#include "message/id_window.h"
#include "message/match/matcher.h"
#include "message/match/space_matchers.h"
#include "message/rx/active_messages.h"
#include "message/rx/in_message.h"
#include "message/rx/placement.h"
#include "message/rx/regions.h"
#include "message/rx/remote_operations.h"
#include "message/rx/rma_target.h"
#include "pullman/request.h"
#include "wire/frame.h"

namespace pullman::message {

// What became of one MESSAGE, CHUNK or ENVELOPE frame.
enum class Taken : std::uint8_t {
  kNew,        // it brought something
  kRedundant,  // all of it had come before
  kRefused,    // beyond what was granted, or contradicting what came before
};

struct InboxCounters {
  std::uint64_t messages = 0;    // completed into a receive
  std::uint64_t bytes = 0;       // of those, as sent
  std::uint64_t unexpected = 0;  // found no posted receive at their turn
  std::uint64_t caught_up = 0;   // of those, that a receive posted since has taken
};

// What the inboxes of one engine share; it outlives them.
struct InboxResources {
  Matcher& matcher;                   // of space 0
  std::pmr::memory_resource& memory;  // for messages held; bounded by the allowances
  Pool<IdBitmap>& bitmaps;
  Slab<ShortMessage>& shorts;  // the same of short ones
  Pool<ActiveMessages>& active;
  InboxCounters& counters;
  Terms terms;                    // of the memory for messages held: one peer's
  std::uint32_t eager_bytes;      // of one message, that a peer may send before a GRANT
  SpaceMatchers* more = nullptr;  // of the other spaces, if there are any
  Regions* regions = nullptr;     // for puts, gets and atomics; null: they are refused
};

class Inbox {
 public:
  Inbox(const InboxResources& shared, PeerId peer, RemoteOperations* remote = nullptr);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // The peer's first message id.
  void start(MessageId first);

  Taken handle_message(const wire::Frame& frame);
  Taken handle_chunk(const wire::Frame& frame);
  Taken handle_envelope(const wire::Frame& frame);

  // The bytes that follow a chunk just taken; none, if they must be taken one chunk at a time.
  BytesInOrder in_order_behind(const wire::Frame& chunk) const;
  // What was put has arrived. Nothing else happened since in_order_behind().
  void handle_in_order(const BytesInOrder& bytes);

  // Gives an unexpected message of this peer, just found for it, to a receive that is not posted.
  void attach(Unexpected& message, Request& receive);

  // Takes an unexpected message of this peer out of the matching, under its id.
  void claim(Unexpected& message);
  // Null: there is none of that id.
  Unexpected* find_claimed(MessageId id);
  void attach_claimed(Unexpected& message, Request& receive) noexcept;
  void discard(Unexpected& message);

  // The peer has more to send than its allowance lets it. False: it names one it was never told.
  bool handle_blocked(std::uint64_t limit) { return allowance_.handle_blocked(limit, peer_); }
  bool is_blocked() const { return allowance_.is_blocked(); }
  // What it may use at first; or by now.
  std::uint64_t allowance() const { return allowance_.advertised(); }

  // The program has taken an event that a put of this peer left.
  void event_taken() { allowance_.give_back(kMessageCharge); }

  // GRANT or RESULT.
  bool has_answers() const { return active_ != nullptr && active_->any_due(); }
  // What others gave back counts: it may be so without anything having happened to this peer.
  bool has_frames() const {
    if (has_answers()) [[unlikely]]
      return true;
    return allowance_.is_update_due();
  }
  // Writes due frames into at most `room` bytes; returns how many it used. What was written is no
  // longer due: the caller's packet sees to it that it arrives.
  std::size_t write_frames(std::byte* out, std::size_t room);

  // BYE, which says what has arrived: in so many bytes at most.
  static constexpr std::size_t kMaxByeBytes = wire::kByeBytes + wire::kMaxByeData;
  std::size_t write_bye(std::byte* out) const;
  // Before BYE: what it will except must not be received afterwards, by a receive that is short
  // enough for what has arrived. It keeps its place, and nobody can match it.
  void withdraw_lacking();
  // A frame of a message that has not arrived whole.
  bool is_news(const wire::Frame& frame) const;

  // The peer is gone: receives being filled finish with `status`; complete messages stay to be
  // received, others are dropped.
  void fail(Status status);

  std::uint64_t charged() const { return allowance_.outstanding(); }
  std::size_t filling() const { return active_ == nullptr ? 0 : active_->filling(); }
  // A message has begun and the peer still has to send some of it, or of one before it.
  bool expects_more() const { return active_ != nullptr && active_->expects_more(); }
  // What was asked of the peer is being answered.
  bool is_being_answered() const { return active_ != nullptr && active_->answers() != 0; }
  // Nothing of this peer is kept: no message held, waiting or being filled.
  bool empty() const { return active_ == nullptr; }

 private:
  // --- inbox.cc: frames to messages, and their turns
  Matcher& matcher_of(std::uint8_t kind) {
    const std::uint8_t space = wire::space_of(kind);
    return space == 0 ? shared_.matcher : *shared_.more->find(space);
  }
  bool knows(std::uint8_t kind) const;
  bool may_begin(const wire::Frame& frame, std::uint64_t total) const;
  InMessage* find(MessageId id) { return active_ == nullptr ? nullptr : active_->find(id); }
  InMessage* find_granted(MessageId id);
  ActiveMessages& active();
  Taken take_again(MessageId id, const wire::Frame& frame);
  InMessage* open(MessageId id, const wire::Frame& frame, std::uint64_t total);
  Taken take_bytes(InMessage& message, std::uint64_t offset, std::span<const std::byte> data);
  Taken take_short(MessageId id, const wire::Frame& frame);
  Taken deliver_at_once(const wire::Frame& frame, std::uint64_t charge, Request& receive);
  Taken deliver_special(const wire::Frame& frame, std::uint64_t charge, Request& receive);
  void deliver(std::uint8_t kind, Tag tag, std::span<const std::byte> bytes, Request& receive);
  void finish(Request& receive, Tag tag, std::uint64_t total);
  void take_turns() {
    if (active_ != nullptr && active_->any_waits_turn()) [[unlikely]]
      let_turns_be_taken();
  }
  void let_turns_be_taken();
  void take_turn(InMessage& message);
  void match(InMessage& message);
  void match(ShortMessage& message);

  // --- inbox_matched.cc: messages whose turn has come, until they are over
  // Bytes of it that come before a GRANT.
  std::uint64_t unasked_bytes(const InMessage& message) const {
    return message.announced ? wire::lead_bytes(message.kind) : shared_.eager_bytes;
  }
  void give_to(ShortMessage& message, Request& receive);
  void give_to(InMessage& message, Request& receive);
  void fill(InMessage& message, std::byte* bytes, std::size_t room);
  void fill_nothing(InMessage& message);
  void grant(InMessage& message, std::uint64_t bytes);
  void settle_if_complete(InMessage& message);
  RmaTarget rma() { return {*shared_.regions, *remote_, peer_}; }
  void start_put(InMessage& message);
  void answer_get(InMessage& message);
  void do_atomic(InMessage& message);
  void take_answer(InMessage& message);
  void end(ShortMessage& message);
  void end(InMessage& message);
  void destroy(InMessage& message);
  void destroy(ShortMessage& message);
  void destroy(Unexpected& message);
  void give_back_active();

  // --- inbox_frames.cc: what the peer is told
  bool has_all(const InMessage& message) const;
  bool has_all_of(MessageId id) const;

  const InboxResources& shared_;
  PeerId peer_;
  AllowanceGranted allowance_;  // ended: the peer is gone, and told nothing any more
  IdWindow ids_;                // of messages that have begun to arrive
  MessageId next_turn_ = 0;     // the next message to be matched
  ActiveMessages* active_ = nullptr;
  RemoteOperations* remote_;
};

inline void Inbox::finish(Request& receive, Tag tag, std::uint64_t total) {
  Operation& op = Operation::of(receive);
  ++shared_.counters.messages;
  shared_.counters.bytes += total;
  op.finish_receive(total > op.size ? Status::kTruncated : Status::kOk, peer_, tag,
                    static_cast<std::size_t>(std::min<std::uint64_t>(total, op.size)), total);
}

}  // namespace pullman::message
