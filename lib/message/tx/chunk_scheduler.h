// Which message is cut next, of those that are too long to be copied: each leaves in two parts, the
// eager bytes at once, the rest when the receiver's GRANT says that it is matched (wire.md 4.5).
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
  // packets_left() answers this instead of counting far.
  static constexpr std::size_t kManyPackets = std::size_t{1} << 30;

  // Its bytes up to op.granted may be cut from now on.
  void start(Operation& op) {
    set_stage(op, SendStage::kEager);
    enqueue(eager_, op);
  }
  // Its envelope is in a packet; nothing more of it may be cut before a grant.
  void await_grant(Operation& op) {
    set_stage(op, SendStage::kAwaitingGrant);
    awaiting_grant_.push_back(op);
  }
  // The receiver wants bytes up to `limit` (wire.md 4.5). False: that contradicts what was sent.
  bool handle_grant(Operation& op, std::uint64_t limit, std::uint32_t eager_bytes);
  // So much of it was cut as op.sent says.
  void note_cut(Operation& op);
  // No more of it is to be cut, if anything was.
  void stop(Operation& op);
  void clear();

  bool has_chunks() const { return !eager_.empty() || !bulk_.empty() || !deprioritised_.empty(); }
  // The send to be cut next: there is one.
  Operation& next();
  // Of that: no more than a few chunks leave now, so that its receiver is asked for a grant, since
  // others have theirs.
  bool yields(const Operation& op) const {
    return stage_of(op) == SendStage::kEager && !bulk_.empty() && may_yield(op);
  }
  // Sends other than this one are being cut.
  bool has_others(const Operation& op) const;

  // Bytes that may be cut now, of the first few sends.
  std::uint64_t bytes_left() const;
  // How many packets with those heads take all that may be cut now; kManyPackets if it is that of
  // more than a few sends.
  std::size_t packets_left(ChunkHeads heads, std::size_t packet_bytes) const;
  // Several sends are being cut, and so many packets do not hold what is left of them.
  bool several_fill(std::size_t packets, std::size_t packet_bytes) const;

 private:
  // Its eager bytes are not all there is of it, nor is it to go ahead.
  static bool may_yield(const Operation& op) {
    return op.granted < op.size && !op.special.has_priority && !op.special.is_announced;
  }
  static void enqueue(SendQueue& queue, Operation& op);
  void start_announced(Operation& op);
  // All granted bytes are in packets: either that was all, or a grant must come first.
  void settle(Operation& op);
  // Takes it out of the queue of its stage, if that has one.
  bool remove(Operation& op);
  template <typename Visit>
  bool visit_all(Visit visit) const;

  SendQueue eager_;           // kEager
  SendQueue deprioritised_;   // kDeprioritised
  SendQueue awaiting_grant_;  // kAwaitingGrant
  SendQueue bulk_;            // kBulk
};

}  // namespace pullman::message
