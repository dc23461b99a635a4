// Outbox: messages of a few packets, copied into them one behind the other, so that packets are
// full whatever the messages' sizes (wire.md 4.4): where one ends the next begins. Like a small
// message such a one is done when it is copied.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "message/tx/outbox.h"

namespace pullman::message {

using detail::Operation;

// Fewer bytes are not worth a head of their own, nor a part more to be put together.
constexpr std::size_t kLeastBeginning = 64;

// Packets with room for a message: the first may be begun.
struct Outbox::Spread {
  // A packet has 576 bytes at least (wire.md 5.2), so a chunk alone in one 512.
  static constexpr std::size_t kMost = kMaxCopied / wire::kLeastChunk + 2;

  std::array<Packet*, kMost> packets{};
  std::size_t count = 0;
  std::size_t begun = 0;  // of them: 1 or 0
};

std::size_t Outbox::room_in(const Packet& packet) const {
  const std::size_t end = std::min<std::size_t>(packet.capacity, small_bytes_);
  return end > packet.used ? end - packet.used : 0;
}

// False: so many packets are not to be had, and nothing happened.
bool Outbox::find_room(std::uint64_t bytes, Spread& spread) {
  std::uint64_t left = bytes;
  const auto add = [&](Packet& packet) {
    PULLMAN_DCHECK(spread.count < Spread::kMost);
    spread.packets[spread.count++] = &packet;
    left -= std::min<std::uint64_t>(left, room_in(packet) - wire::kChunkBytes);
  };
  if (!ready_.empty() && room_in(ready_.back()) >= wire::kChunkBytes + kLeastBeginning) {
    add(ready_.back());
    spread.begun = 1;
  }
  while (left > 0) {
    const std::size_t ready = ready_.size() + spread.count - spread.begun;
    Packet* packet =
        ready < kMaxReady ? shared_.packets.take(shared_.packets.large_bytes()) : nullptr;
    if (packet == nullptr) {
      for (std::size_t i = spread.begun; i < spread.count; ++i) {
        shared_.packets.give_back(*spread.packets[i]);
      }
      return false;
    }
    add(*packet);
  }
  return true;
}

// The packet before is to be as long as all others, if it has no room for the beginning of this
// message: packets of one length make one burst.
void Outbox::fill_up_last() {
  if (ready_.empty()) return;
  Packet& last = ready_.back();
  const std::size_t room = room_in(last);
  if (room < wire::kPaddingBytes) return;
  last.used +=
      static_cast<std::uint32_t>(wire::put_padding(last.end(), room - wire::kPaddingBytes));
}

// The message that the head tells, whose bytes from `at` on `copy(at, out)` writes.
template <typename Copy>
void Outbox::write_parts(const Spread& spread, wire::Frame head, MessageId id, Copy copy) {
  if (spread.begun == 0) fill_up_last();
  head.type = wire::FrameType::kChunk;
  head.id = low32(id);
  for (std::size_t i = 0; i < spread.count; ++i) {
    Packet& packet = *spread.packets[i];
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(room_in(packet) - wire::kChunkBytes, head.total - head.offset));
    std::byte* const out = packet.end();
    wire::put_chunk(out, head, length);
    copy(head.offset, std::span(out + wire::kChunkBytes, length));
    head.offset += length;
    packet.used += static_cast<std::uint32_t>(wire::kChunkBytes + length);
    packet.messages = Packet::kUncounted;
    if (i < spread.begun) continue;
    packet.peer = peer_index_;
    ready_.push_back(packet);
  }
  PULLMAN_DCHECK(head.offset == head.total);
  note_parts(id, spread.count);
}

// The pools have one of each for every peer.
void Outbox::note_parts(MessageId id, std::size_t packets) {
  if (queues_ == nullptr) queues_ = shared_.queues.take();
  PULLMAN_CHECK(queues_ != nullptr);
  if (queues_->parts == nullptr) queues_->parts = shared_.parts.take();
  PULLMAN_CHECK(queues_->parts != nullptr);
  queues_->parts->add(id, packets);
}

bool Outbox::copy_parts(const Small& message) {
  const std::size_t total = message.total();
  Spread spread;
  if (!find_room(total, spread)) return false;
  wire::Lead lead;
  std::size_t lead_bytes = 0;
  if (wire::has_immediate(message.kind)) {
    lead_bytes = wire::put_immediate(lead.data(), message.immediate);
  }
  const wire::Frame head{.kind = message.kind, .tag = message.tag, .total = total, .data = {}};
  write_parts(spread, head, admit(total), [&](std::uint64_t at, std::span<std::byte> out) {
    if (at < lead_bytes) {
      const std::size_t of_lead = std::min<std::size_t>(lead_bytes - at, out.size());
      std::memcpy(out.data(), lead.data() + at, of_lead);
      out = out.subspan(of_lead);
      at += of_lead;
    }
    if (!out.empty()) std::memcpy(out.data(), message.bytes.data() + (at - lead_bytes), out.size());
  });
  return true;
}

// A plain message that had to wait.
bool Outbox::copy_parts(Operation& op) {
  Spread spread;
  if (!find_room(op.size, spread)) return false;
  admit(op);
  const wire::Frame head{.tag = op.tag, .total = op.size, .data = {}};
  write_parts(spread, head, op.message, [&](std::uint64_t at, std::span<std::byte> out) {
    std::memcpy(out.data(), op.buffer + at, out.size());
  });
  return true;
}

// A packet with that message, or with a part of it, has arrived.
void Outbox::note_arrived(std::uint32_t id_low) {
  const MessageId id = expand(id_low, ids_.floor());
  if (ids_.finished(id)) return;  // of an envelope: its bytes were heard of before it
  Parts* parts = queues_ == nullptr ? nullptr : queues_->parts;
  if (parts != nullptr && !parts->arrived(id)) return;
  ids_.finish(id, shared_.bitmaps);
  if (parts != nullptr && parts->empty()) give_back_parts();
}

void Outbox::give_back_parts() {
  shared_.parts.give_back(queues_->parts);
  queues_->parts = nullptr;
}

}  // namespace pullman::message
