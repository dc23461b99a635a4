// The sending side of one peer's messages: ids, coalescing, holding back.
//
// Small messages are copied into packets that wait for their turn, as many to a packet as fit; long
// ones are cut (cutter.h). Where allowance is used up a message's envelope goes ahead, and its
// bytes when the receiver wants them. What cannot be admitted now (ids, envelopes or packets used
// up) waits by reference in the caller's own Request, so waiting costs no memory and has no limit
// of its own. Does not know links, windows or time: it hands out packets when asked and is told of
// acked ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/pool.h"
#include "channel/packet.h"
#include "channel/run.h"
#include "message/allowance.h"
#include "message/cutter.h"
#include "message/id_window.h"
#include "message/parcel.h"
#include "message/send_queues.h"
#include "pullman/request.h"
#include "wire/frame.h"

namespace pullman::message {

using channel::Packet;
using channel::PacketPool;
using channel::PacketQueue;

// What the outboxes of one engine share; it outlives them. Of queues there is one for each.
struct OutboxResources {
  PacketPool& packets;
  Pool<IdBitmap>& bitmaps;
  Pool<SendQueues>& queues;
};

class Outbox {
 public:
  // `first`: the first message id. Before the peer has introduced itself, packets are at most
  // `first_packet_bytes` long and little may be charged.
  Outbox(const OutboxResources& shared, std::uint32_t peer_index, MessageId first,
         std::size_t first_packet_bytes);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // The peer introduced itself: how long packets to it may be, and what it allows.
  struct Limits {
    std::size_t packet_bytes = 0;
    std::uint64_t allowance = 0;
    std::uint64_t envelopes = 0;
    std::uint32_t eager_bytes = 0;
  };
  void handle_hello(const Limits& limits);

  // The path to the peer carries packets of so many bytes, from now on.
  void set_packet_bytes(std::size_t bytes) { cutter_.set_packet_bytes(bytes); }
  // Every path to the peer carries packets of so many bytes: small messages are packed into those.
  void set_small_bytes(std::size_t bytes) { small_bytes_ = static_cast<std::uint32_t>(bytes); }

  // Bytes of long messages that may be cut now, of the first few of them.
  std::uint64_t bytes_to_cut() const {
    return queues_ == nullptr ? 0 : Cutter::bytes_to_cut(*queues_);
  }

  // Takes a message. True if it was copied and the request is done.
  bool send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request);

  // The same of anything but a plain message. kOk: copied, and the request is done. kPending. With
  // only_copy, kBusy: it could not be copied now, and nothing happened.
  Status send(PeerId peer, const Parcel& parcel, Request& request);

  // A RESULT came for a message of that id. kNone: there is no such message (any more).
  enum class Found : std::uint8_t { kYes, kNone, kRefused };
  Found handle_result(MessageId id, Status status);
  // The id that a frame means; nothing if there is none yet.
  std::optional<MessageId> id_of(std::uint32_t id_low) const;

  // False: the frame contradicts what was sent.
  bool handle_grant(std::uint32_t id_low, std::uint64_t limit);
  void handle_allowance(std::uint64_t limit, std::uint64_t envelopes) {
    allowance_.raise(limit);
    envelopes_.raise(envelopes);
  }

  // Whether next_packet() has something to give (unless the pool is empty).
  bool has_packets() const { return !ready_.empty() || has_chunks() || may_admit(); }

  using Heads = message::Heads;
  // The next packet to leave, its header to be written; null if there is none.
  Packet* next_packet(Heads heads = Heads::kFull);

  // Something is being cut into chunks.
  bool has_chunks() const { return queues_ != nullptr && Cutter::has_chunks(*queues_); }

  // Chunks of one message, at least kLeastRun, to leave before any packet does; null if none are to
  // be had: next_packet() gives what there is.
  channel::Run* next_run(const RunWish& wish);
  static constexpr std::uint32_t kLeastRun = Cutter::kLeastRun;

  // A packet with nothing else in it, for control frames; null when the pool is empty.
  Packet* control_packet(std::size_t bytes);

  // A packet or a run from here arrived: finishes what it completed. It is the caller's again.
  void handle_acked(Packet& packet);

  // A packet from here has arrived, but for its rest, which it now holds (message/pieces.h).
  void handle_piece_acked(Packet& packet);

  // The peer is gone: every unfinished send finishes with `status`; packets not yet handed out go
  // back to the pool. `abandoned()` must have been told of those that were.
  void fail(Status status);
  // A packet handed out earlier will not be sent any more.
  void abandon(Packet& packet);

  std::size_t unfinished() const { return queues_ == nullptr ? 0 : queues_->size(); }
  // Everything accepted is acked.
  bool idle() const { return queues_ == nullptr && ready_.empty() && all_begun(); }
  std::size_t queued_packets() const { return ready_.size(); }
  std::size_t packet_bytes() const { return cutter_.packet_bytes(); }
  std::uint64_t held_back() const { return held_back_; }

 private:
  // Small messages copied but not yet sent, to one peer: beyond, they wait by reference, so that
  // one stalled peer does not take the packets of all.
  static constexpr std::size_t kMaxReady = 64;

  using Queue = SendQueues::Queue;

  bool is_small(std::size_t size) const;
  bool may_begin(std::uint64_t size) const {
    return (introduced_ || is_small(size)) && begun_.contains(next_id_);
  }
  bool can_admit(std::uint64_t size) const;
  bool can_admit(const detail::Operation& op) const;
  bool can_announce(const detail::Operation& op) const;
  bool may_leave(const Queue& waiting) const {
    return !waiting.empty() && (can_admit(waiting.front()) || can_announce(waiting.front()));
  }
  bool may_admit() const {
    return queues_ != nullptr && (may_leave(queues_->waiting) || may_leave(queues_->solicited));
  }
  bool has_waiting() const { return queues_ != nullptr && !queues_->waiting.empty(); }
  bool anything_waits() const {
    return queues_ != nullptr && (!queues_->waiting.empty() || !queues_->solicited.empty());
  }
  bool all_begun() const { return begun_.floor() == next_id_; }
  std::uint64_t charge_for(std::uint8_t kind, std::uint64_t total) const;
  void need_queues();
  void keep(detail::Operation& op);
  void hold_back(detail::Operation& op);
  void give_back_queues();
  MessageId admit(std::uint64_t size);
  void admit(detail::Operation& op);
  void take_id(detail::Operation& op);
  std::byte* room_for(std::size_t bytes);
  bool copy_small(Tag tag, std::span<const std::byte> bytes);
  bool copy_small(detail::Operation& op);
  bool copy_envelope(detail::Operation& op);
  void copied(MessageId id, std::size_t bytes);
  Status settle_copied(detail::Operation& op);
  void admit_waiting();
  bool admit_waiting(Queue& waiting);
  bool leave(Queue& waiting, detail::Operation& op);
  void start_long(detail::Operation& op);
  detail::Operation* find(MessageId id);
  void finish(detail::Operation& op, Status status);
  void finish_if_acked(detail::Operation& op);
  void finish_arrived();
  void note_begun(detail::Operation& op);
  static void count_message(Packet& packet, MessageId id);
  void note_messages(const Packet& packet);

  const OutboxResources& shared_;
  SendQueues* queues_ = nullptr;  // while a send is unfinished
  IdWindow begun_;                // ids that the peer is known to have heard of
  MessageId next_id_;
  AllowanceSpent allowance_;
  AllowanceSpent envelopes_;
  Cutter cutter_;
  std::uint32_t small_bytes_;
  std::uint32_t peer_index_;
  bool introduced_ = false;  // the peer's limits are known: long messages may start
  bool announces_ = false;   // the last message to leave was an envelope
  bool chunk_turn_ = false;  // chunks and small messages alternate while there are both
  PacketQueue ready_;        // packets of small messages; the last one may still be filled
  std::uint64_t held_back_ = 0;
};

}  // namespace pullman::message
