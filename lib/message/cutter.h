// What is cut into chunks: messages that do not fit a packet, and the bytes of those whose envelope
// went ahead. A packet's chunk refers to the caller's buffer until it is acked.
//
// A long message leaves in two parts: the eager bytes at once, the rest when the receiver's GRANT
// says that it is matched. Knows how far each has got and what chunks look like. Does not know what
// may be sent at all, nor when a message is done: the outbox does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/packet.h"
#include "channel/run.h"
#include "message/allowance.h"
#include "message/send_queues.h"

namespace pullman::message {

// How packets begin that may be bulk packets (wire.md 2.11).
enum class Heads : std::uint8_t {
  kFull,  // with header and CHUNK
  kRide,  // the same, and no more of them than there have to be: an ACK is to ride along
  kBulk,
};

// What runs are to be.
struct RunWish {
  std::size_t most = 0;  // chunks at most
  // Packets of one length: if more is to follow the last one, too, so that a burst need not end.
  bool equal = false;
  Heads heads = Heads::kFull;
};

class Cutter {
 public:
  static constexpr std::uint32_t kLeastRun = 2;

  Cutter(channel::PacketPool& packets, std::uint32_t peer_index, std::size_t packet_bytes)
      : packets_(packets),
        packet_bytes_(static_cast<std::uint32_t>(packet_bytes)),
        peer_index_(peer_index) {}

  void set_packet_bytes(std::size_t bytes) { packet_bytes_ = static_cast<std::uint32_t>(bytes); }
  void set_eager_bytes(std::uint32_t bytes) { eager_bytes_ = bytes; }
  std::uint32_t packet_bytes() const { return packet_bytes_; }
  std::uint32_t eager_bytes() const { return eager_bytes_; }

  // Its eager bytes may be cut.
  void start(SendQueues& queues, detail::Operation& op);

  // The receiver wants `limit` bytes in all. False: that contradicts what was sent.
  bool grant(SendQueues& queues, detail::Operation& op, std::uint64_t limit);

  // Of the rest of it nothing is wanted.
  void stop(SendQueues& queues, detail::Operation& op);

  static bool has_chunks(const SendQueues& queues) {
    return !queues.eager.empty() || !queues.bulk.empty();
  }
  // Bytes that may be cut now, of the first few messages.
  static std::uint64_t bytes_to_cut(const SendQueues& queues);

  // The next chunk in a packet; null if there is no packet. There are chunks.
  channel::Packet* cut_chunk(SendQueues& queues, Heads heads);
  // Chunks of one message, at least kLeastRun; null if none are to be had.
  channel::Run* cut_run(SendQueues& queues, const RunWish& wish);

 private:
  using Queue = SendQueues::Queue;

  static Queue& next(SendQueues& queues) {
    return queues.eager.empty() ? queues.bulk : queues.eager;
  }
  static void enqueue(Queue& queue, detail::Operation& op);
  // Of what lies beyond the eager bytes, or an envelope, the receiver has told how much it wants
  // (wire.md 4.5).
  bool may_be_bulk(const detail::Operation& op) const {
    return op.sent >= eager_bytes_ || op.special.has_envelope;
  }
  std::size_t room_for_chunk(const detail::Operation& op) const;
  static const std::byte* place_payload(const detail::Operation& op, channel::Packet& packet,
                                        std::size_t length);
  static void settle(Queue& from, detail::Operation& op);

  channel::PacketPool& packets_;
  std::uint32_t packet_bytes_;
  std::uint32_t eager_bytes_ = kLeastEager;
  std::uint32_t peer_index_;
};

}  // namespace pullman::message
