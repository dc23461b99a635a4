// Packs copied messages into packets that wait to be sent: as many messages into a packet as fit,
// and a message that is little longer than a packet into several consecutive ones, so that packets
// are full whatever the messages' sizes (wire.md 4.4).
//
// The caller reserves room first, then gives the message its id, then writes. Does not know whether
// a message may be sent, nor what becomes of packets after that. One per outbox.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/short_copy.h"
#include "channel/packet.h"
#include "message/operation.h"
#include "pullman/types.h"
#include "wire/frame.h"

namespace pullman::message {

using channel::Packet;
using channel::PacketPool;
using channel::PacketQueue;

// A message whose request is done once it is in a packet.
struct SmallMessage {
  std::uint8_t kind = 0;  // a kind of message; not a synchronous one
  Tag tag = 0;
  std::uint64_t immediate = 0;  // if the kind says so
  std::span<const std::byte> bytes;
  std::size_t total() const {
    return (wire::has_immediate(kind) ? wire::kImmediateBytes : 0) + bytes.size();
  }
};

class MessagePacker {
 public:
  // Longest message that is copied. One that fits no single packet shares those of its neighbours.
  // Longer ones are cut into chunks in place: copying would save few packets, which cost less than
  // the work for each packet that is not part of a run (decision 0006).
  static constexpr std::size_t kMaxCopied = 2048;
  // Most packets of one peer that wait. Beyond that messages wait by reference, so that one stalled
  // peer does not take the packets of all.
  static constexpr std::size_t kMaxQueued = 64;

  MessagePacker(std::uint32_t peer_index, std::size_t packet_bytes);

  // Every path to the peer carries packets of this size; messages are packed into such packets.
  void set_packet_bytes(std::size_t bytes) { packet_bytes_ = static_cast<std::uint16_t>(bytes); }

  bool empty() const { return packets_.empty(); }
  std::size_t size() const { return packets_.size(); }
  std::uint32_t peer_index() const { return peer_index_; }

  // Whether a message of that size fits into one packet.
  bool fits_packet(std::size_t size) const {
    return size + wire::kMessageBytes + wire::kHeaderBytes <= packet_bytes_;
  }
  // Whether it fits into the last packet, behind other messages.
  bool fits_last(std::size_t size) const {
    return !packets_.empty() && has_room(packets_.back(), wire::kMessageBytes + size);
  }

  // Reserves room for frames of that many bytes, behind the last packet's or in a new packet.
  // Returns false if there is neither.
  bool reserve(std::size_t bytes, PacketPool& pool);
  // Each writes into the room that was reserved.
  void write(const SmallMessage& message, MessageId id);
  void write(const Operation& op);
  void write_envelope(const Operation& op);
  void write_blocked(std::uint64_t limit);

  // Room for a message in several packets, the first of which may already hold messages.
  struct Span {
    // A packet has at least 576 bytes (wire.md 5.2), so a chunk alone in one has at least 512.
    static constexpr std::size_t kMax = kMaxCopied / wire::kLeastChunk + 2;

    std::array<Packet*, kMax> packets{};
    std::size_t count = 0;
    std::size_t begun = 0;  // packets that already held messages: 0 or 1
  };
  // Returns false, and does nothing, if there are not enough packets.
  bool reserve(std::uint64_t bytes, PacketPool& pool, Span& span);
  void write(const SmallMessage& message, MessageId id, const Span& span);
  void write(const Operation& op, const Span& span);

  // Whether a packet is next. Packets and chunks alternate while there are both.
  bool is_next(bool has_chunks) {
    const bool is_ours = !packets_.empty() && !(has_chunks && chunks_are_next_);
    chunks_are_next_ = is_ours;
    return is_ours;
  }
  // Takes the first packet that waits. There must be one.
  Packet& take_first() {
    Packet& packet = packets_.front();
    packets_.pop_front();
    return packet;
  }
  void give_back_all(PacketPool& pool);

  // Calls visit(id's lower 32 bits) for each message that has a frame in `packet`, which was
  // written here and of which all, or this fragment, has arrived. A message may be in other
  // packets, too.
  template <typename Visit>
  static void for_each_message(const Packet& packet, Visit&& visit);

 private:
  bool has_room(const Packet& packet, std::size_t bytes) const {
    return packet.used + bytes <= std::min<std::size_t>(packet.capacity, packet_bytes_);
  }
  std::size_t room_in(const Packet& packet) const {
    const std::size_t end = std::min<std::size_t>(packet.capacity, packet_bytes_);
    return end > packet.used ? end - packet.used : 0;
  }
  // Counts consecutive ids only. Those in one packet need not be, because messages that are cut
  // into chunks take ids, too.
  static void count_message(Packet& packet, MessageId id) {
    if (packet.used == wire::kHeaderBytes) [[likely]] {
      packet.first_message = id;
      packet.messages = 1;
    } else if (packet.messages != Packet::kUncounted) {
      packet.messages =
          id == packet.first_message + packet.messages ? packet.messages + 1 : Packet::kUncounted;
    }
  }
  void pad_last();
  template <typename Copy>
  void write_chunks(const Span& span, wire::Frame head, MessageId id, Copy copy);

  PacketQueue packets_;  // the last one may still be filled
  std::uint32_t peer_index_ : 24;
  std::uint32_t chunks_are_next_ : 1 = 0;
  std::uint16_t packet_bytes_;  // 16 bits, as on the wire (wire.md 2.1)
};

inline bool MessagePacker::reserve(std::size_t bytes, PacketPool& pool) {
  if (!packets_.empty() && has_room(packets_.back(), bytes)) return true;
  if (packets_.size() >= kMaxQueued) return false;
  // A lone small message takes a large packet, too: others may join it.
  Packet* packet = pool.take(pool.large_bytes());
  if (packet == nullptr) return false;
  packet->peer = peer_index_;
  packets_.push_back(*packet);
  return true;
}

inline void MessagePacker::write(const SmallMessage& message, MessageId id) {
  Packet& packet = packets_.back();
  const std::size_t total = message.total();
  std::byte* out = packet.end();
  wire::put_message(out,
                    {.type = wire::FrameType::kMessage,
                     .kind = message.kind,
                     .id = low32(id),
                     .tag = message.tag,
                     .data = {}},
                    total);
  out += wire::kMessageBytes;
  if (wire::has_immediate(message.kind)) out += wire::put_immediate(out, message.immediate);
  copy_short(out, message.bytes.data(), message.bytes.size());
  count_message(packet, id);
  packet.used += static_cast<std::uint32_t>(wire::kMessageBytes + total);
}

template <typename Visit>
void MessagePacker::for_each_message(const Packet& packet, Visit&& visit) {
  if (packet.payload != nullptr) {  // a frame that leaves in fragments
    const wire::Frame head = wire::chunk_head(packet.body().data());
    if (head.offset + packet.payload_bytes == packet.fragment_end) visit(head.id);
    return;
  }
  wire::FrameReader reader(packet.body());
  wire::Frame frame;
  while (reader.next(frame)) {
    if (frame.type == wire::FrameType::kMessage || frame.type == wire::FrameType::kChunk ||
        frame.type == wire::FrameType::kEnvelope)
      visit(frame.id);
  }
}

}  // namespace pullman::message
