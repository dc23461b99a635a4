// The sending side of one peer's messages: ids, coalescing, chunks, holding back.
//
// Small messages are copied into packets that wait for their turn, as many to a packet as fit, and
// those that are little longer than a packet into several (outbox_parts.cc); long ones are cut into
// chunks that refer to the caller's buffer until they are acked. A long message leaves in two
// parts: the eager bytes at once, the rest when the receiver's GRANT says that it is matched. What
// cannot be admitted now (ids, allowance or packets used up) waits by reference in the caller's own
// Request, so waiting costs no memory and has no limit of its own. Does not know links, windows or
// time: it hands out packets when asked and is told of acked ones.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/pool.h"
#include "channel/packet.h"
#include "channel/run.h"
#include "message/allowance.h"
#include "message/id_window.h"
#include "message/send_descriptor.h"
#include "message/tx/delivered.h"
#include "message/tx/spanning_messages.h"
#include "pullman/request.h"
#include "wire/frame.h"

namespace pullman::message {

using channel::Packet;
using channel::PacketPool;
using channel::PacketQueue;

// Where an unfinished send stands (detail::Operation::stage).
enum class SendStage : std::uint32_t {
  kWaiting,         // no id yet: an earlier one waits, or ids, allowance or packets are used up
  kEager,           // has an id; eager bytes are being cut into chunks
  kDeprioritised,   // the same, once it has begun: what others were granted goes first
  kAwaitingGrant,   // the eager bytes, or its envelope, are in packets; it is not matched yet
  kBulk,            // granted; the rest is being cut into chunks
  kSent,            // all wanted bytes are in packets; acks are outstanding
  kArriving,        // copied into packets; it is to be told when all has arrived
  kAwaitingResult,  // all has arrived, or was copied; the receiver's RESULT is outstanding
};

// The sends of one outbox that are not finished, by stage, and messages of several packets that
// have not arrived. An outbox has this only while there are any: most peers of many are idle.
struct SendQueues {
  using Queue =
      boost::intrusive::list<detail::Operation,
                             boost::intrusive::member_hook<detail::Operation, detail::QueueHook,
                                                           &detail::Operation::queue>,
                             boost::intrusive::constant_time_size<false>>;
  using All = boost::intrusive::list<
      detail::Operation,
      boost::intrusive::member_hook<detail::Operation, detail::QueueHook, &detail::Operation::all>,
      boost::intrusive::constant_time_size<true>>;
  struct IdOf {
    using type = MessageId;
    MessageId operator()(const detail::Operation& op) const { return op.message; }
  };
  using ById = boost::intrusive::set<
      detail::Operation,
      boost::intrusive::member_hook<detail::Operation, detail::IdHook, &detail::Operation::by_id>,
      boost::intrusive::key_of_value<IdOf>, boost::intrusive::constant_time_size<false>>;

  Queue waiting;                      // kWaiting, in the order of send()
  Queue solicited;                    // kWaiting, what the receiver asked for: waits for no other
  Queue eager;                        // kEager
  Queue is_deprioritised;             // kDeprioritised
  Queue awaiting_grant;               // kAwaitingGrant
  Queue bulk;                         // kBulk
  Queue arriving;                     // kArriving
  All unfinished;                     // all of these, kSent and kAwaitingResult
  ById by_id;                         // of them, those that have an id
  Parts* parts = nullptr;             // while messages of several packets have not arrived
  std::uint64_t said_blocked_at = 0;  // the limit at which BLOCKED was said last
};

struct OutboxCounters {
  std::uint64_t held_back = 0;  // sends that had to wait for the receiver's allowance, or for an id
  std::uint64_t announced = 0;  // of those, by their envelopes
};

// What the outboxes of one engine share; it outlives them. Of queues and parts there is one for
// each.
struct OutboxResources {
  PacketPool& packets;
  Pool<IdBitmap>& bitmaps;
  Pool<SendQueues>& queues;
  Pool<Parts>& parts;
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

  // The path to the peer carries packets of so many bytes, from now on.
  void set_packet_bytes(std::size_t bytes) { packet_bytes_ = static_cast<std::uint16_t>(bytes); }
  // Every path to the peer carries packets of so many bytes: small messages are packed into those.
  void set_small_bytes(std::size_t bytes) { small_bytes_ = static_cast<std::uint16_t>(bytes); }

  // Bytes of long messages that may be cut now, of the first few of them.
  std::uint64_t bytes_to_cut() const;

  // Messages that fit no packet are copied, too, up to this, into the packets of those beside them
  // (outbox_parts.cc). Longer ones are cut into chunks where they lie: the few packets that would
  // save cost less than what is done for each that is no part of a run (decision 0006).
  static constexpr std::size_t kMaxCopied = 2048;

  // Takes a plain message if it goes into the packet that others wait in: of many small ones nearly
  // all do. False: nothing happened.
  bool append(Tag tag, std::span<const std::byte> bytes) noexcept;

  // Takes a message. True if it was copied and the request is done.
  bool send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) noexcept;

  // What is done once it is in a packet.
  struct Small {
    std::uint8_t kind = 0;  // of messages; not a synchronous one
    Tag tag = 0;
    std::uint64_t immediate = 0;  // if the kind says so
    std::span<const std::byte> bytes;
    std::size_t total() const {
      return (wire::has_immediate(kind) ? wire::kImmediateBytes : 0) + bytes.size();
    }
  };
  // True: it was copied and the request is done. Else it could not be now, and nothing happened.
  bool send_copy(PeerId peer, const Small& message, Request& request) noexcept;

  // The same of anything but a plain message. kOk: copied, and the request is done. kPending. With
  // only_copy, kBusy: it could not be copied now, and nothing happened. The request has room for
  // the pieces (make_room()).
  Status send(PeerId peer, const SendDescriptor& descriptor, Request& request) noexcept;

  // A RESULT came for a message of that id. kNone: there is no such message (any more).
  enum class Found : std::uint8_t { kYes, kNone, kRefused };
  Found handle_result(MessageId id, Status status);
  // The id that a frame means; nothing if there is none yet.
  std::optional<MessageId> id_of(std::uint32_t id_low) const;

  // False: the frame contradicts what was sent.
  bool handle_grant(std::uint32_t id_low, std::uint64_t limit);
  void handle_allowance(std::uint64_t limit, std::uint64_t whole_limit) {
    allowance_.raise(limit, whole_limit);
  }

  // The first message that waits has no allowance, but may be announced by its envelope; or it may
  // not, and the receiver is to be told that something is blocked.
  bool may_announce() const {
    if (queues_ == nullptr || queues_->waiting.empty()) [[likely]]
      return false;
    return may_announce(queues_->waiting.front()) || is_blocked(queues_->waiting.front());
  }
  // Does so, for as many as may be. When nothing that was sent is unheard of, so that allowance is
  // not just coming back. False: none could, for want of a packet.
  bool announce();

  // Whether next_packet() has something to give (unless the pool is empty).
  bool has_packets() const { return !ready_.empty() || has_chunks() || may_admit(); }

  // How packets begin that may be bulk packets (wire.md 2.11).
  enum class Heads : std::uint8_t {
    kFull,  // with header and CHUNK
    kRide,  // the same, and no more of them than there have to be: an ACK is to ride along
    kBulk,
  };
  // The next packet to leave, its header to be written; null if there is none.
  Packet* next_packet(Heads heads = Heads::kFull);

  // Something is being cut into chunks.
  bool has_chunks() const {
    if (queues_ == nullptr) [[likely]]
      return false;
    return !queues_->eager.empty() || !queues_->bulk.empty() || !queues_->is_deprioritised.empty();
  }

  // How many packets with those heads take all that may be cut now: kManyPackets if that is more
  // than a few messages, or if others wait to be cut.
  std::size_t packets_left(Heads heads) const;
  static constexpr std::size_t kManyPackets = std::size_t{1} << 30;

  // Several messages are being cut into chunks, and so many packets do not hold what is left.
  bool several_fill(std::size_t packets) const;

  // What runs are to be.
  struct RunWish {
    std::size_t most = 0;  // chunks at most
    // Packets of one length: if more is to follow the last one, too, so that a burst need not end.
    bool equal = false;
    bool beside = false;  // others leave with it
    Heads heads = Heads::kFull;
  };
  // Chunks of one message, at least kLeastRun, to leave before any packet does; null if none are to
  // be had: next_packet() gives what there is.
  channel::Run* next_run(const RunWish& wish);
  static constexpr std::uint32_t kLeastRun = 2;

  // So many packets would be a part of the message that is to be cut next, of another length than
  // all of it would have.
  bool splits_next(std::size_t packets);

  // A packet with nothing else in it, for control frames; null when the pool is empty.
  Packet* control_packet(std::size_t bytes);

  // An ACK came, of some of them: the next one need not be asked for yet.
  void note_ack() { unasked_ = 0; }
  // A packet or a run from here arrived: finishes what it completed. It is the caller's again.
  void handle_acked(Packet& packet);

  // A packet from here has arrived, but for its rest, which it now holds (message/tx/fragments.h).
  void handle_fragment_acked(Packet& packet);

  // The peer leaves, and says what it has. False: something of that was never sent.
  bool may_say(const wire::Frame& bye) const { return Delivered(bye, next_id_).end() <= next_id_; }
  // What it has is delivered, whichever ACKs are missing. No packet is under way any more.
  void handle_bye(const wire::Frame& bye);

  // The peer is gone: every unfinished send finishes with `status`; packets not yet handed out go
  // back to the pool. `abandoned()` must have been told of those that were.
  void fail(Status status);
  // A packet handed out earlier will not be sent any more.
  void abandon(Packet& packet);

  std::size_t unfinished() const { return queues_ == nullptr ? 0 : queues_->unfinished.size(); }
  // Everything accepted is acked.
  bool idle() const { return queues_ == nullptr && ready_.empty() && ids_.floor() == next_id_; }
  std::size_t queued_packets() const { return ready_.size(); }
  std::size_t packet_bytes() const { return packet_bytes_; }

 private:
  // Small messages copied but not yet sent, to one peer: beyond, they wait by reference, so that
  // one stalled peer does not take the packets of all.
  static constexpr std::size_t kMaxReady = 64;

  using Queue = SendQueues::Queue;

  bool is_small(std::size_t size) const;
  // A plain message that is copied though it takes several packets.
  bool is_copied(std::uint64_t size) const {
    return size <= kMaxCopied && size <= eager_bytes_ && !is_small(size);
  }
  bool is_copied(const detail::Operation& op) const {
    return !op.special.is_special && is_copied(op.size);
  }
  // The next message may have its id (wire.md 4.3).
  bool has_id() const {
    return ids_.contains(next_id_) && (queues_ == nullptr || is_near_oldest(next_id_));
  }
  bool is_near_oldest(MessageId id) const {
    return queues_->by_id.empty() || id - queues_->by_id.begin()->message < kIdsToOldest;
  }
  bool can_admit(std::uint64_t size) const;
  bool has_waiting() const { return queues_ != nullptr && !queues_->waiting.empty(); }
  bool may_admit() const {
    if (queues_ == nullptr) [[likely]]
      return false;
    return (!queues_->waiting.empty() && can_admit(queues_->waiting.front())) ||
           (!queues_->solicited.empty() && can_admit(queues_->solicited.front()));
  }
  bool can_admit(const detail::Operation& op) const;
  bool may_announce(const detail::Operation& op) const;
  bool is_blocked(const detail::Operation& op) const;
  bool put_envelope(detail::Operation& op);
  bool put_blocked();
  void send_announced(detail::Operation& op);
  bool affords(std::uint64_t charge) const {
    return allowance_.affords_whole(charge, kept_ * kMessageCharge);
  }
  bool affords_unheld(std::uint8_t kind, std::uint64_t total) const;
  bool can_admit(std::uint64_t total, std::uint64_t charge, bool affordable) const;
  bool anything_waits() const {
    if (queues_ == nullptr) [[likely]]
      return false;
    return !queues_->waiting.empty() || !queues_->solicited.empty();
  }
  std::uint64_t charge_for(std::uint8_t kind, std::uint64_t total) const;
  void begin(detail::Operation& op);
  void end(detail::Operation& op);
  void note_id(detail::Operation& op) { queues_->by_id.push_back(op); }
  detail::Operation* find(MessageId id);
  void note_begun(MessageId id);
  void give_back_queues();
  MessageId admit(std::uint64_t size);
  std::byte* room_for(std::size_t bytes);
  static void write_small(Packet& packet, const Small& message, MessageId id);
  bool copy_small(const Small& message);
  bool copy_small(detail::Operation& op);
  struct Spread;
  std::size_t room_in(const Packet& packet) const;
  bool find_room(std::uint64_t bytes, Spread& spread);
  void fill_up_last();
  template <typename Copy>
  void write_parts(const Spread& spread, wire::Frame head, MessageId id, Copy copy);
  bool copy_parts(const Small& message);
  bool copy_parts(detail::Operation& op);
  void note_parts(MessageId id, std::size_t packets);
  void note_arrived(std::uint32_t id_low);
  void give_back_parts();
  Status settle_copied(detail::Operation& op);
  void admit(detail::Operation& op);
  void give_id(detail::Operation& op);
  bool admit_waiting(Queue& waiting);
  static const std::byte* place_payload(const detail::Operation& op, Packet& packet,
                                        std::size_t length);
  std::size_t room_for_chunk(const detail::Operation& op) const;
  bool asks(const detail::Operation& op, std::uint32_t cut);
  // So many packets more leave. True: the next that ends a message asks for its ACK, as a receiver
  // says nothing by itself in the middle of a long one.
  bool count_unasked(std::uint32_t packets) {
    unasked_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(unasked_ + packets, 65535));
    return unasked_ >= kAskedPer;
  }
  void note_asked() { owes_ask_ = unasked_ = 0; }
  static void enqueue(Queue& queue, detail::Operation& op);
  void finish(detail::Operation& op, Status status);
  void finish_arrived();
  static void count_message(Packet& packet, MessageId id);
  void start_long(detail::Operation& op);
  void admit_waiting();
  Queue& next_to_cut();
  Packet* cut_chunk(Queue& from, Heads heads);
  // Who granted it knows its tag and total (wire.md 2.12).
  static bool may_be_bulk(const detail::Operation& op) { return stage(op) == SendStage::kBulk; }
  // Its eager bytes are not all there is of it, nor asked to go ahead.
  static bool may_yield(const detail::Operation& op) {
    return op.granted < op.size && !op.special.has_priority && !op.special.is_announced;
  }
  channel::Run* cut_run(Queue& from, const RunWish& wish);
  void settle_stage(detail::Operation& op, Queue* from);
  Queue* queue_of(const detail::Operation& op);
  static bool is_ungranted(const detail::Operation& op);
  void set_stage(detail::Operation& op, SendStage stage, Queue* from, Queue* to);
  static SendStage stage(const detail::Operation& op) { return static_cast<SendStage>(op.stage); }
  void finish_if_acked(detail::Operation& op);
  void finish_messages(const Packet& packet);

  static constexpr std::uint32_t kAskedPer = 64;
  static constexpr std::uint32_t kAskedPerIfShort = 16;  // of packets

  const OutboxResources& shared_;
  SendQueues* queues_ = nullptr;  // while a send is unfinished
  IdWindow ids_;                  // of messages that have begun to arrive, as far as it is known
  MessageId next_id_;
  AllowanceSpent allowance_;
  std::uint16_t packet_bytes_;  // as a packet says its length (wire.md 2.1)
  std::uint16_t small_bytes_;
  std::uint32_t eager_bytes_ = kLeastEager;
  std::uint32_t peer_index_ : 24;
  std::uint32_t introduced_ : 1 = 0;  // the peer's limits are known: long messages may start
  std::uint32_t owes_ask_ : 1 = 0;    // somebody waits for a packet that has not asked for its ACK
  std::uint32_t chunk_turn_ : 1 = 0;  // chunks and small messages alternate while there are both
  std::uint16_t unasked_ = 0;         // packets since an ACK came or was asked for
  std::uint16_t kept_ = 0;            // of the allowance, for envelopes: so many messages' charge
  PacketQueue ready_;  // packets of copied messages; the last one may still be filled
};

}  // namespace pullman::message
