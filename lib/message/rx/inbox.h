// The receiving side of one peer's messages: reassembly, exactly-once delivery, matching in the
// order of message ids.
//
// Bytes are placed as they arrive (placement.h); only matching waits for earlier messages. A
// message that is matched when its first byte arrives is written straight into the receive's
// buffer; bytes that arrive before the match are held within the peer's allowance. RmaTarget
// decides what peers do to regions. Does not know packets, links or time. Finishes receives itself;
// offers GRANT and ALLOWANCE frames through has_frames() / write_frames().
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

// What a MESSAGE, CHUNK or ENVELOPE frame turned out to be.
enum class Taken : std::uint8_t {
  kNew,        // it brought something new
  kRedundant,  // all of it had arrived before
  kRefused,    // beyond what was granted, or it contradicts earlier frames
};

struct InboxCounters {
  std::uint64_t messages = 0;    // messages completed into a receive
  std::uint64_t bytes = 0;       // of those messages, as sent
  std::uint64_t unexpected = 0;  // messages without a posted receive at their turn
  std::uint64_t caught_up = 0;   // those of them that a later receive has taken
};

// What the inboxes of one engine share; it outlives them.
struct InboxResources {
  Matcher& matcher;                   // for space 0
  std::pmr::memory_resource& memory;  // for messages held; bounded by the allowances
  Pool<IdBitmap>& bitmaps;
  Slab<ShortMessage>& shorts;  // for short messages held; bounded likewise
  Pool<ActiveMessages>& active;
  InboxCounters& counters;
  Terms terms;                    // how much memory for held messages one peer may use
  std::uint32_t eager_bytes;      // bytes of one message that may arrive before a GRANT
  SpaceMatchers* more = nullptr;  // for the other spaces; null if there are none
  Regions* regions = nullptr;     // for puts, gets and atomics; null: they are refused
};

class Inbox {
 public:
  Inbox(const InboxResources& shared, PeerId peer, RemoteOperations* remote = nullptr);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // `first` is the peer's first message id.
  void start(MessageId first);

  Taken handle_message(const wire::Frame& frame);
  Taken handle_chunk(const wire::Frame& frame);
  Taken handle_envelope(const wire::Frame& frame);

  // Returns where the bytes of a chunk go, whose frame has only their number; the caller may read
  // them into that place, and calls handle_chunk() next. Returns nothing if there is no one place
  // for them, or if handle_chunk() will refuse them. The message begins, if it had not.
  std::span<std::byte> place_for(const wire::Frame& chunk);

  // Where the bytes behind a chunk just taken go; none, if each chunk must be taken by
  // handle_chunk().
  BytesInOrder in_order_behind(const wire::Frame& chunk) const;
  // The bytes that were put there have arrived. Nothing else may have happened since
  // in_order_behind().
  void handle_in_order(const BytesInOrder& bytes);

  // Gives an unexpected message of this peer to a receive that fits and is not posted.
  void attach(Unexpected& message, Request& receive);

  // Takes an unexpected message of this peer out of the matching; its id finds it.
  void claim(Unexpected& message);
  // Returns null if no claimed message has that id.
  Unexpected* find_claimed(MessageId id);
  void attach_claimed(Unexpected& message, Request& receive) noexcept;
  void discard(Unexpected& message);

  // The peer has more to send than its allowance lets it. Returns false if it names a limit that it
  // was never told.
  bool handle_blocked(std::uint64_t limit) { return allowance_.handle_blocked(limit, peer_); }
  bool is_blocked() const { return allowance_.is_blocked(); }
  // Returns the limit of the peer's allowance as it was told last.
  std::uint64_t allowance() const { return allowance_.advertised(); }

  // The program has taken an event that a put of this peer left.
  void event_taken() { allowance_.give_back(kMessageCharge); }

  // Whether a GRANT or RESULT is due.
  bool has_answers() const { return active_ != nullptr && active_->any_due(); }
  // Whether any frame is due. May become true without a call here: when other peers give memory
  // back.
  bool has_frames() const {
    if (has_answers()) [[unlikely]]
      return true;
    return allowance_.is_update_due();
  }
  // Writes due frames into at most `room` bytes; returns how many it used. What was written is not
  // due any more: the caller must make its packet arrive.
  std::size_t write_frames(std::byte* out, std::size_t room);

  // Writes BYE, which tells what has arrived; it has at most kMaxByeBytes.
  static constexpr std::size_t kMaxByeBytes = wire::kByeBytes + wire::kMaxByeData;
  std::size_t write_bye(std::byte* out) const;
  // Takes unexpected messages that have not arrived whole out of the matching, before write_bye()
  // excepts them: else a later receive, short enough for what has arrived, could get one. They stay
  // in memory, and nothing can match them.
  void withdraw_lacking();
  // Whether the frame is of a message that has not arrived whole.
  bool is_news(const wire::Frame& frame) const;

  // The peer is gone: receives that are being filled finish with `status`; complete messages stay
  // to be received, others are dropped.
  void fail(Status status);

  std::uint64_t charged() const { return allowance_.outstanding(); }
  std::size_t filling() const { return active_ == nullptr ? 0 : active_->filling(); }
  // Whether a message has begun and the peer still has to send some of it, or of an earlier one.
  bool expects_more() const { return active_ != nullptr && active_->expects_more(); }
  // Whether an answer to a get or atomic of ours is arriving.
  bool is_being_answered() const { return active_ != nullptr && active_->answers() != 0; }
  // Whether nothing of this peer is left: no message held, waiting or being filled.
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
  // Returns the bytes of the message that arrive before a GRANT.
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

  // --- inbox_frames.cc: frames to the peer
  bool has_all(const InMessage& message) const;
  bool has_all_of(MessageId id) const;

  const InboxResources& shared_;
  PeerId peer_;
  AllowanceGranted allowance_;  // ended once the peer is gone
  IdWindow ids_;                // ids of messages that have begun to arrive
  MessageId next_turn_ = 0;     // id of the next message to be matched
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
