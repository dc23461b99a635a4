// The sending side of one peer's messages.
//
// A small message is copied into a packet that waits to be sent (MessagePacker); a long one is cut
// into chunks that refer to the caller's buffer until they are acked (ChunkScheduler decides which
// is next, chunk_cutter.h cuts). A message that may not be sent yet (SendAdmission) waits
// (WaitingSends), or is announced by its envelope (wire.md 4.12). Unfinished sends are in the
// SendTable. The outbox passes each send from one of these to the next. Hands out packets when
// asked and is told which are acked; does not know links, windows or time.
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

// State that an outbox has only while a send is unfinished, or a message of several packets has not
// arrived: of many peers most are idle.
struct ActiveSends {
  SendTable table;                        // all sends that are not finished
  WaitingSends waiting;                   // kWaiting
  ChunkScheduler chunks;                  // sends that are cut, or await their grant
  SendQueue arriving;                     // kArriving
  SpanningMessages* spanning = nullptr;   // while there are any
  std::uint64_t blocked_reported_at = 0;  // the last limit that a BLOCKED frame reported
};

struct OutboxCounters {
  std::uint64_t held_back = 0;  // sends that had to wait for allowance or an id
  std::uint64_t announced = 0;  // those of them that were announced by envelopes
};

// What the outboxes of one engine share; it outlives them. The last two pools have one object for
// each outbox.
struct OutboxResources {
  PacketPool& packets;
  Pool<IdBitmap>& bitmaps;
  Pool<ActiveSends>& active;
  Pool<SpanningMessages>& spanning;
  OutboxCounters& counters;
};

class Outbox {
 public:
  // `first`: the first message id. Until handle_hello(), packets are at most `first_packet_bytes`
  // long and little allowance may be used.
  Outbox(const OutboxResources& shared, std::uint32_t peer_index, MessageId first,
         std::size_t first_packet_bytes);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // The peer's HELLO or WELCOME told how long packets to it may be, and its allowance.
  void handle_hello(std::size_t packet_bytes, std::uint64_t allowance, std::uint32_t eager_bytes);

  // The current path carries packets of this size.
  void set_packet_bytes(std::size_t bytes) { packet_bytes_ = static_cast<std::uint16_t>(bytes); }
  // Every path to the peer carries packets of this size: small messages are packed into such
  // packets.
  void set_small_bytes(std::size_t bytes) { packer_.set_packet_bytes(bytes); }

  // --- sends

  // Takes a plain message if it fits into the last packet that waits: of many small ones nearly all
  // do. Returns false if nothing happened.
  bool append(Tag tag, std::span<const std::byte> bytes) noexcept;

  // Takes a message. Returns true if it was copied and the request is done.
  bool send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) noexcept;

  // Returns true if it was copied and the request is done; false if it cannot be copied now and
  // nothing happened.
  bool send_copy(PeerId peer, const SmallMessage& message, Request& request) noexcept;

  // Takes any message. Returns kOk if it was copied and the request is done; kPending; or, with
  // only_copy, kBusy if it cannot be copied now and nothing happened. The request must have room
  // for the segments (make_room()).
  Status send(PeerId peer, const SendDescriptor& descriptor, Request& request) noexcept;

  // --- frames of the peer

  // Handles a RESULT for the message of that id. kNone: there is no such message (any more).
  // kRefused: it does not wait for one.
  enum class Found : std::uint8_t { kYes, kNone, kRefused };
  Found handle_result(MessageId id, Status status);
  // Returns the full id of a message that a frame names; nothing if none has had it.
  std::optional<MessageId> id_of(std::uint32_t id_low) const { return admission_.id_of(id_low); }

  // Returns false if the frame contradicts what was sent.
  bool handle_grant(std::uint32_t id_low, std::uint64_t limit);
  void handle_allowance(std::uint64_t limit, std::uint64_t whole_limit) {
    admission_.handle_allowance(limit, whole_limit);
  }

  // Whether the peer's BYE can be true: it names only messages that were sent.
  bool is_possible(const wire::Frame& bye) const {
    return Delivered(bye, admission_.next_id()).end() <= admission_.next_id();
  }
  // Finishes the messages that the peer has, whichever ACKs are missing. No packet may be in flight
  // any more.
  void handle_bye(const wire::Frame& bye);

  // --- packets to leave

  // Whether the first message that waits lacks allowance and may be announced by its envelope, or
  // may not and the receiver is to be told that we are blocked.
  bool may_announce() const;
  // Announces as many as possible, or reports that we are blocked. Call it when no packet is in
  // flight, so that no allowance is on its way. Returns false if nothing could be written, for want
  // of a packet.
  bool announce();

  // Whether next_packet() has something to give (unless the pool is empty).
  bool has_packets() const { return !packer_.empty() || has_chunks() || may_admit(); }
  // Whether a message is being cut into chunks.
  bool has_chunks() const {
    if (active_ == nullptr) [[likely]]
      return false;
    return active_->chunks.has_chunks();
  }
  // Returns how many packets of copied messages wait.
  std::size_t queued_packets() const { return packer_.size(); }

  using Heads = ChunkHeads;
  // Returns the next packet to send, its header still to be written; null if there is none. One
  // with a chunk is up to packet_bytes() long, or `chunk_bytes` if that is given; one of copied
  // messages may be longer if the path has become narrower since it was packed.
  Packet* next_packet(Heads heads = Heads::kFull, std::optional<std::size_t> chunk_bytes = {});

  // Describes the run that is wanted.
  struct RunWish {
    std::size_t max_chunks = 0;
    bool equal_lengths = false;  // of all packets that are sent in one burst
    bool shares_burst = false;   // other runs are sent before it in the burst
    Heads heads = Heads::kFull;
  };
  // Returns chunks of one message, at least kMinRun, that are to be sent before any packet; null if
  // there are none: then next_packet() may have something.
  channel::Run* next_run(const RunWish& wish);

  // Returns an empty packet for control frames; null when the pool is empty.
  Packet* control_packet(std::size_t bytes);

  // --- how much is left to be cut

  // Returns the bytes of long messages that may be cut now, of the first few of them.
  std::uint64_t bytes_to_cut() const;
  // Returns how many packets with those heads take all that may be cut now; kManyPackets if more
  // than a few messages are being cut, or others wait.
  std::size_t packets_left(Heads heads) const;
  static constexpr std::size_t kManyPackets = ChunkScheduler::kManyPackets;
  // Whether several messages are being cut, and what is left takes more than `packets` packets.
  bool several_fill(std::size_t packets) const;
  // Whether this many packets would hold only a part of the message to be cut next, and cut that to
  // another length than the whole would be cut to.
  bool splits_next(std::size_t packets);

  // --- packets that have left

  // Some packets from here were acked: the next request for an ACK can wait.
  void note_ack() { acks_.handle_ack(); }
  // A packet or run from here has arrived: finishes the messages that it completes. The packet is
  // the caller's again.
  void handle_acked(Packet& packet);
  // A fragment of a packet from here has arrived. The packet now holds its rest
  // (message/tx/fragments.h).
  void handle_fragment_acked(Packet& packet);
  // A packet that was handed out will not be sent any more.
  void abandon(Packet& packet);

  // The peer is gone: every unfinished send finishes with `status`; packets not yet handed out go
  // back to the pool. Call abandon() for those handed out first.
  void fail(Status status);

  std::size_t unfinished() const { return active_ == nullptr ? 0 : active_->table.size(); }
  // The id of the next message, and the one below which all are known to have begun to arrive.
  MessageId next_id() const { return admission_.next_id(); }
  MessageId begun_until() const { return admission_.begun_until(); }
  // Whether all accepted messages are acked.
  bool idle() const { return active_ == nullptr && packer_.empty() && admission_.have_all_begun(); }
  std::size_t packet_bytes() const { return packet_bytes_; }

 private:
  // --- how a message is sent, and whether it may be now
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

  // --- messages that have arrived
  void finish_messages(const Packet& packet);
  void note_arrived(std::uint32_t id_low);
  void finish_arrived();
  void finish_if_acked(Operation& op);
  void finish(Operation& op, Status status);
  void give_back_active();
  void give_back_spanning();

  const OutboxResources& shared_;
  ActiveSends* active_ = nullptr;
  // Idle peers should take little memory: the next members use the padding of these two.
  [[no_unique_address]] SendAdmission admission_;
  AckRequester acks_;
  [[no_unique_address]] MessagePacker packer_;
  std::uint16_t packet_bytes_;  // of the current path
};
static_assert(sizeof(Outbox) <= 104);

}  // namespace pullman::message
