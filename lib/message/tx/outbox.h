// The sending side of one peer's messages.
//
// A small message is copied into a packet that waits for its turn (MessagePacker); a long one is
// cut into chunks that refer to the caller's buffer until they are acked (ChunkScheduler says
// which, chunk_cutter.h how). One that may not leave yet (SendAdmission) waits (WaitingSends), or
// is announced by its envelope (wire.md 4.12). What is not finished is in the SendTable. Here they
// meet: each send goes from one to the next. Hands out packets when asked and is told of acked
// ones; does not know links, windows or time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/pool.h"
#include "channel/packet.h"
#include "channel/run.h"
#include "message/send_descriptor.h"
#include "message/tx/ack_requester.h"
#include "message/tx/chunk_cutter.h"
#include "message/tx/chunk_scheduler.h"
#include "message/tx/delivered.h"
#include "message/tx/message_packer.h"
#include "message/tx/send_admission.h"
#include "message/tx/send_stage.h"
#include "message/tx/send_table.h"
#include "message/tx/spanning_messages.h"
#include "message/tx/waiting_sends.h"
#include "pullman/request.h"
#include "wire/frame.h"

namespace pullman::message {

// What an outbox has only while a send is unfinished, or a message of several packets has not
// arrived: most peers of many are idle.
struct ActiveSends {
  SendTable table;                        // all of them
  WaitingSends waiting;                   // kWaiting
  ChunkScheduler chunks;                  // those that are cut, or await their grant
  SendQueue arriving;                     // kArriving
  SpanningMessages* spanning = nullptr;   // while there are any
  std::uint64_t blocked_reported_at = 0;  // the limit at which BLOCKED was said last
};

struct OutboxCounters {
  std::uint64_t held_back = 0;  // sends that had to wait for the receiver's allowance, or for an id
  std::uint64_t announced = 0;  // of those, by their envelopes
};

// What the outboxes of one engine share; it outlives them. Of active sends and spanning messages
// there is one for each.
struct OutboxResources {
  PacketPool& packets;
  Pool<IdBitmap>& bitmaps;
  Pool<ActiveSends>& active;
  Pool<SpanningMessages>& spanning;
  OutboxCounters& counters;
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
  void handle_hello(std::size_t packet_bytes, std::uint64_t allowance, std::uint32_t eager_bytes);

  // The path that is used carries packets of so many bytes, from now on.
  void set_packet_bytes(std::size_t bytes) { packet_bytes_ = static_cast<std::uint16_t>(bytes); }
  // Every path to the peer carries packets of so many bytes: small messages are packed into those.
  void set_small_bytes(std::size_t bytes) { packer_.set_packet_bytes(bytes); }

  // --- sends

  // Takes a plain message if it goes into the packet that others wait in: of many small ones nearly
  // all do. False: nothing happened.
  bool append(Tag tag, std::span<const std::byte> bytes) noexcept;

  // Takes a message. True if it was copied and the request is done.
  bool send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) noexcept;

  // True: it was copied and the request is done. Else it could not be now, and nothing happened.
  bool send_copy(PeerId peer, const SmallMessage& message, Request& request) noexcept;

  // The same of anything but a plain message. kOk: copied, and the request is done. kPending. With
  // only_copy, kBusy: it could not be copied now, and nothing happened. The request has room for
  // the segments (make_room()).
  Status send(PeerId peer, const SendDescriptor& descriptor, Request& request) noexcept;

  // --- frames of the peer

  // A RESULT came for a message of that id. kNone: there is no such message (any more).
  enum class Found : std::uint8_t { kYes, kNone, kRefused };
  Found handle_result(MessageId id, Status status);
  // The id that a frame means; nothing if there is none yet.
  std::optional<MessageId> id_of(std::uint32_t id_low) const { return admission_.id_of(id_low); }

  // False: the frame contradicts what was sent.
  bool handle_grant(std::uint32_t id_low, std::uint64_t limit);
  void handle_allowance(std::uint64_t limit, std::uint64_t whole_limit) {
    admission_.handle_allowance(limit, whole_limit);
  }

  // The peer leaves, and says what it has. False: something of that was never sent.
  bool is_possible(const wire::Frame& bye) const {
    return Delivered(bye, admission_.next_id()).end() <= admission_.next_id();
  }
  // What it has is delivered, whichever ACKs are missing. No packet is under way any more.
  void handle_bye(const wire::Frame& bye);

  // --- packets to leave

  // The first message that waits has no allowance, but may be announced by its envelope; or it may
  // not, and the receiver is to be told that something is blocked.
  bool may_announce() const;
  // Does so, for as many as may be. When nothing that was sent is unheard of, so that allowance is
  // not just coming back. False: none could, for want of a packet.
  bool announce();

  // Whether next_packet() has something to give (unless the pool is empty).
  bool has_packets() const { return !packer_.empty() || has_chunks() || may_admit(); }
  // Something is being cut into chunks.
  bool has_chunks() const {
    if (active_ == nullptr) [[likely]]
      return false;
    return active_->chunks.has_chunks();
  }
  // Packets of copied messages that wait.
  std::size_t queued_packets() const { return packer_.size(); }

  using Heads = ChunkHeads;
  // The next packet to leave, its header to be written; null if there is none.
  Packet* next_packet(Heads heads = Heads::kFull);

  // What a run is to be like.
  struct RunWish {
    std::size_t max_chunks = 0;
    bool equal_lengths = false;  // of all packets that leave in one burst
    bool shares_burst = false;   // other runs leave in front of it
    Heads heads = Heads::kFull;
  };
  // Chunks of one message, at least kMinRun, to leave before any packet does; null if none are to
  // be had: next_packet() gives what there is.
  channel::Run* next_run(const RunWish& wish);

  // A packet with nothing else in it, for control frames; null when the pool is empty.
  Packet* control_packet(std::size_t bytes);

  // --- how much is left to be cut

  // Bytes of long messages that may be cut now, of the first few of them.
  std::uint64_t bytes_to_cut() const;
  // How many packets with those heads take all that may be cut now; kManyPackets if that is more
  // than a few messages, or if others wait to be cut.
  std::size_t packets_left(Heads heads) const;
  static constexpr std::size_t kManyPackets = ChunkScheduler::kManyPackets;
  // Several messages are being cut into chunks, and so many packets do not hold what is left.
  bool several_fill(std::size_t packets) const;
  // So many packets would be a part of the message that is to be cut next, of another length than
  // all of it would have.
  bool splits_next(std::size_t packets);

  // --- packets that have left

  // An ACK came, of some of them: the next one need not be asked for yet.
  void note_ack() { acks_.handle_ack(); }
  // A packet or a run from here arrived: finishes what it completed. It is the caller's again.
  void handle_acked(Packet& packet);
  // A packet from here has arrived, but for its rest, which it now holds (message/tx/fragments.h).
  void handle_fragment_acked(Packet& packet);
  // A packet handed out earlier will not be sent any more.
  void abandon(Packet& packet);

  // The peer is gone: every unfinished send finishes with `status`; packets not yet handed out go
  // back to the pool. abandon() must have been told of those that were.
  void fail(Status status);

  std::size_t unfinished() const { return active_ == nullptr ? 0 : active_->table.size(); }
  // Everything accepted is acked.
  bool idle() const { return active_ == nullptr && packer_.empty() && admission_.have_all_begun(); }
  std::size_t packet_bytes() const { return packet_bytes_; }

 private:
  // --- how a message leaves, and whether it may now
  bool is_small(std::size_t size) const {
    return size <= admission_.eager_bytes() && packer_.fits_packet(size);
  }
  bool is_spanning(std::uint64_t size) const {
    return size <= MessagePacker::kMaxCopied && size <= admission_.eager_bytes() && !is_small(size);
  }
  bool is_spanning(const Operation& op) const {
    return !op.special.is_special && is_spanning(op.size);
  }
  bool has_waiting() const { return active_ != nullptr && active_->waiting.has_in_order(); }
  bool anything_waits() const {
    if (active_ == nullptr) [[likely]]
      return false;
    return !active_->waiting.empty();
  }
  MessageId oldest_id() const {
    const MessageId next = admission_.next_id();
    return active_ == nullptr ? next : active_->table.oldest_id(next);
  }
  bool has_id() const { return admission_.has_id(oldest_id()); }
  // There is an id, and the peer's limits are known or not needed.
  bool may_begin(std::uint64_t size) const {
    if (!admission_.knows_peer() && !is_small(size)) [[unlikely]]
      return false;
    return has_id();
  }
  bool can_admit(const Operation& op) const;
  bool may_admit() const {
    if (active_ == nullptr) [[likely]]
      return false;
    const Operation* in_order = active_->waiting.first_in_order();
    const Operation* solicited = active_->waiting.first_solicited();
    return (in_order != nullptr && can_admit(*in_order)) ||
           (solicited != nullptr && can_admit(*solicited));
  }
  bool may_announce(const Operation& op) const;
  bool is_blocked(const Operation& op) const;

  // --- from one component to the next
  void begin(Operation& op);
  void wait(Operation& op);
  void admit(Operation& op);
  void give_id(Operation& op, MessageId id);
  void start_long(Operation& op);
  bool copy_small(const SmallMessage& message);
  bool copy_small(Operation& op);
  bool copy_spanning(const SmallMessage& message);
  bool copy_spanning(Operation& op);
  void note_spanning(MessageId id, std::size_t packets);
  Status settle_copied(Operation& op);
  void admit_waiting();
  bool copy_waiting(Operation& op);
  bool announce(Operation& op);
  void report_blocked();
  bool requests_ack(const Operation& op, std::uint32_t chunks);

  // --- what has arrived
  void finish_messages(const Packet& packet);
  void note_arrived(std::uint32_t id_low);
  void finish_arrived();
  void finish_if_acked(Operation& op);
  void finish(Operation& op, Status status);
  void give_back_active();
  void give_back_spanning();

  const OutboxResources& shared_;
  ActiveSends* active_ = nullptr;
  // An idle peer is to take little memory: what follows lies in what these two leave free.
  [[no_unique_address]] SendAdmission admission_;
  AckRequester acks_;
  [[no_unique_address]] MessagePacker packer_;
  std::uint16_t packet_bytes_;  // of the path that is used
};
static_assert(sizeof(Outbox) <= 104);

}  // namespace pullman::message
