#include "message/tx/message_packer.h"

#include <cstring>

#include "base/check.h"
#include "message/send_descriptor.h"

namespace pullman::message {

namespace {

// A shorter beginning is not worth a head of its own, nor another fragment to reassemble.
constexpr std::size_t kMinBeginning = 64;
static_assert(kMinBeginning >= wire::kImmediateBytes);

}  // namespace

MessagePacker::MessagePacker(std::uint32_t peer_index, std::size_t packet_bytes)
    : peer_index_(peer_index), packet_bytes_(static_cast<std::uint16_t>(packet_bytes)) {
  PULLMAN_CHECK(peer_index_ == peer_index);
}

void MessagePacker::write(const Operation& op) {
  Packet& packet = packets_.back();
  std::byte* out = packet.end();
  wire::put_message(out,
                    {.type = wire::FrameType::kMessage,
                     .kind = op.special.wire_kind,
                     .id = low32(op.message),
                     .tag = op.tag,
                     .data = {}},
                    op.size);
  copy_out(op, 0, {out + wire::kMessageBytes, op.size});
  packet.wants_ack = packet.wants_ack || op.special.wants_arrival;
  count_message(packet, op.message);
  packet.used += static_cast<std::uint32_t>(wire::kMessageBytes + op.size);
}

// wire.md 4.12: of the message itself only the lead is sent, which is what matching needs.
void MessagePacker::write_envelope(const Operation& op) {
  const std::size_t lead = op.special.lead_bytes;
  Packet& packet = packets_.back();
  std::byte* out = packet.end();
  wire::put_envelope(out,
                     {.type = wire::FrameType::kEnvelope,
                      .kind = op.special.wire_kind,
                      .id = low32(op.message),
                      .tag = op.tag,
                      .total = op.size,
                      .data = {}},
                     lead);
  if (lead != 0) copy_out(op, 0, {out + wire::kEnvelopeBytes, lead});
  packet.messages = Packet::kUncounted;
  packet.used += static_cast<std::uint32_t>(wire::kEnvelopeBytes + lead);
}

void MessagePacker::write_blocked(std::uint64_t limit) {
  Packet& packet = packets_.back();
  packet.messages = Packet::kUncounted;
  packet.used += static_cast<std::uint32_t>(wire::put_blocked(packet.end(), limit));
}

bool MessagePacker::reserve(std::uint64_t bytes, PacketPool& pool, Span& span) {
  std::uint64_t left = bytes;
  const auto add = [&](Packet& packet) {
    PULLMAN_DCHECK(span.count < Span::kMax);
    span.packets[span.count++] = &packet;
    left -= std::min<std::uint64_t>(left, room_in(packet) - wire::kChunkBytes);
  };
  if (!packets_.empty() && room_in(packets_.back()) >= wire::kChunkBytes + kMinBeginning) {
    add(packets_.back());
    span.begun = 1;
  }
  while (left > 0) {
    const std::size_t queued = packets_.size() + span.count - span.begun;
    Packet* packet = queued < kMaxQueued ? pool.take(pool.large_bytes()) : nullptr;
    if (packet == nullptr) {
      for (std::size_t i = span.begun; i < span.count; ++i) pool.give_back(*span.packets[i]);
      return false;
    }
    add(*packet);
  }
  return true;
}

// If the last packet has no room for the beginning of this message, makes it as long as all others:
// packets of one length make one burst.
void MessagePacker::pad_last() {
  if (packets_.empty()) return;
  Packet& last = packets_.back();
  const std::size_t room = room_in(last);
  if (room < wire::kPaddingBytes) return;
  last.used +=
      static_cast<std::uint32_t>(wire::put_padding(last.end(), room - wire::kPaddingBytes));
}

// Writes the message that `head` describes; `copy(at, out)` writes its bytes from `at` on.
template <typename Copy>
void MessagePacker::write_chunks(const Span& span, wire::Frame head, MessageId id, Copy copy) {
  if (span.begun == 0) pad_last();
  head.type = wire::FrameType::kChunk;
  head.id = low32(id);
  for (std::size_t i = 0; i < span.count; ++i) {
    Packet& packet = *span.packets[i];
    const auto length = static_cast<std::size_t>(
        std::min<std::uint64_t>(room_in(packet) - wire::kChunkBytes, head.total - head.offset));
    std::byte* const out = packet.end();
    wire::put_chunk(out, head, length);
    copy(head.offset, std::span(out + wire::kChunkBytes, length));
    head.offset += length;
    packet.used += static_cast<std::uint32_t>(wire::kChunkBytes + length);
    packet.messages = Packet::kUncounted;
    if (i < span.begun) continue;
    packet.peer = peer_index_;
    packets_.push_back(packet);
  }
  PULLMAN_DCHECK(head.offset == head.total);
}

void MessagePacker::write(const SmallMessage& message, MessageId id, const Span& span) {
  wire::Lead lead;
  std::size_t lead_bytes = 0;
  if (wire::has_immediate(message.kind)) {
    lead_bytes = wire::put_immediate(lead.data(), message.immediate);
  }
  const wire::Frame head{
      .kind = message.kind, .tag = message.tag, .total = message.total(), .data = {}};
  write_chunks(span, head, id, [&](std::uint64_t at, std::span<std::byte> out) {
    if (at == 0) {  // the first packet has room for the whole lead
      std::memcpy(out.data(), lead.data(), lead_bytes);
      out = out.subspan(lead_bytes);
      at = lead_bytes;
    }
    if (!out.empty()) std::memcpy(out.data(), message.bytes.data() + (at - lead_bytes), out.size());
  });
}

// Writes a plain message.
void MessagePacker::write(const Operation& op, const Span& span) {
  const wire::Frame head{.tag = op.tag, .total = op.size, .data = {}};
  write_chunks(span, head, op.message, [&](std::uint64_t at, std::span<std::byte> out) {
    std::memcpy(out.data(), op.buffer + at, out.size());
  });
}

void MessagePacker::give_back_all(PacketPool& pool) {
  while (!packets_.empty()) pool.give_back(take_first());
}

}  // namespace pullman::message
