// Decides which message is cut next, of those that are too long to be copied. Each is sent in two
// parts: the eager bytes at once, the rest when the receiver's GRANT tells that it is matched
// (wire.md 4.5).
//
// Knows the stages of sends and how many of their bytes may be cut. Does not know packets, ids or
// allowance.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/operation.h"
#include "message/tx/chunk_cutter.h"
#include "message/tx/send_stage.h"

namespace pullman::message {

class ChunkScheduler {
 public:
  // What packets_left() returns instead of counting far.
  static constexpr std::size_t kManyPackets = std::size_t{1} << 30;

  // Bytes of `op` up to op.granted may be cut from now on.
  void start(Operation& op) {
    set_stage(op, SendStage::kEager);
    enqueue(eager_, op);
  }
  // Its envelope is in a packet; nothing more of it may be cut before a GRANT.
  void await_grant(Operation& op) {
    set_stage(op, SendStage::kAwaitingGrant);
    awaiting_grant_.push_back(op);
  }
  // The receiver wants bytes up to `limit` (wire.md 4.5). Returns false if that contradicts what
  // was sent.
  bool handle_grant(Operation& op, std::uint64_t limit, std::uint32_t eager_bytes);
  // Bytes of `op` up to op.sent have been cut.
  void note_cut(Operation& op);
  // Cuts no more of it, if any of it was to be cut.
  void stop(Operation& op);
  void clear();

  bool has_chunks() const { return !eager_.empty() || !bulk_.empty() || !deprioritised_.empty(); }
  // Returns the send to be cut next. There must be one.
  Operation& next();
  // Whether only a few chunks of it may be sent now, enough to get a GRANT from its receiver,
  // because other sends have theirs.
  bool yields(const Operation& op) const {
    return stage_of(op) == SendStage::kEager && !bulk_.empty() && may_yield(op);
  }
  // Sends other than this one are being cut.
  bool has_others(const Operation& op) const;

  // Returns the bytes that may be cut now, of the first few sends.
  std::uint64_t bytes_left() const;
  // Returns how many packets with those heads take all that may be cut now; kManyPackets if more
  // than a few sends are being cut.
  std::size_t packets_left(ChunkHeads heads, std::size_t packet_bytes) const;
  // Whether several sends are being cut and what is left of them takes more than `packets` packets.
  bool several_fill(std::size_t packets, std::size_t packet_bytes) const;

 private:
  // It has more than its eager bytes, and no priority.
  static bool may_yield(const Operation& op) {
    return op.granted < op.size && !op.special.has_priority && !op.special.is_announced;
  }
  static void enqueue(SendQueue& queue, Operation& op);
  void start_announced(Operation& op);
  // All granted bytes are in packets: either the send is all cut, or a GRANT must come first.
  void settle(Operation& op);
  // Takes it out of the queue of its stage. Returns false if that stage has none.
  bool remove(Operation& op);
  template <typename Visit>
  bool visit_all(Visit visit) const;

  SendQueue eager_;           // kEager
  SendQueue deprioritised_;   // kDeprioritised
  SendQueue awaiting_grant_;  // kAwaitingGrant
  SendQueue bulk_;            // kBulk
};

}  // namespace pullman::message
