#include "message/tx/fragments.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/frame.h"

namespace pullman::message {
namespace {

using channel::Packet;

std::byte* frames_of(Packet& packet) {
  return packet.bytes + wire::kHeaderBytes;
}

std::uint32_t narrow(std::size_t bytes) {
  return static_cast<std::uint32_t>(bytes);
}

// Returns the head of a packet whose only frame is a CHUNK with its data elsewhere.
wire::Frame head_of(const Packet& packet) {
  return packet.is_bulk ? wire::bulk_head(packet.bytes + wire::kBulkHeaderBytes)
                        : wire::chunk_head(packet.bytes + wire::kHeaderBytes);
}

void set_chunk(Packet& packet, std::uint64_t offset, std::size_t length) {
  wire::Frame head = head_of(packet);
  head.offset = offset;
  packet.payload_bytes = narrow(length);
  if (packet.is_bulk) {
    wire::put_bulk(packet.bytes + wire::kBulkHeaderBytes, head);
  } else {
    wire::put_chunk(frames_of(packet), head, length);
  }
}

void fragment_chunk(Packet& packet, std::size_t limit) {
  const std::size_t length = packet.payload_bytes;
  std::size_t part = limit - packet.used;
  if (part >= length) return;
  // Leaves the last fragment at least kLeastChunk bytes, if it can.
  const std::size_t left = length - part;
  if (left < wire::kLeastChunk && part >= 2 * wire::kLeastChunk - left)
    part = length - wire::kLeastChunk;
  packet.rest += narrow(length - part);
  set_chunk(packet, head_of(packet).offset, part);
}

// Returns the length of the leading frames that are whole within `limit` bytes.
std::size_t whole_frames(const Packet& packet, std::size_t limit) {
  const std::byte* const end = packet.bytes + limit;
  std::size_t whole = 0;
  wire::FrameReader reader(packet.body());
  wire::Frame frame;
  while (reader.next(frame) && frame.data.data() + frame.data.size() <= end) {
    whole = static_cast<std::size_t>(frame.data.data() + frame.data.size() - packet.bytes);
  }
  return whole;
}

// The first frame is a CHUNK of `length` bytes in the packet's memory: makes them the payload, and
// the frames behind it the rest.
void take_own_bytes_as_payload(Packet& packet, std::uint64_t offset, std::size_t length) {
  packet.rest += narrow(packet.used - wire::kHeaderBytes - wire::kChunkBytes - length);
  packet.used = wire::kHeaderBytes + wire::kChunkBytes;
  packet.payload = packet.end();
  packet.payload_bytes = narrow(length);
  packet.fragment_end = narrow(offset + length);
}

// Does the same; a first frame that is a MESSAGE becomes a CHUNK of all its bytes first.
void take_own_bytes_as_payload(Packet& packet) {
  wire::FrameReader reader(packet.body());
  wire::Frame frame;
  const bool read = reader.next(frame);
  if (read && frame.type == wire::FrameType::kChunk)
    return take_own_bytes_as_payload(packet, frame.offset, frame.data.size());
  PULLMAN_CHECK(read && frame.type == wire::FrameType::kMessage);
  PULLMAN_CHECK(packet.used + packet.rest + kFragmentRoom <= packet.capacity);
  const std::size_t length = frame.data.size();
  std::byte* const data = frames_of(packet) + wire::kMessageBytes;
  std::memmove(data + kFragmentRoom, data,
               packet.used + packet.rest - wire::kHeaderBytes - wire::kMessageBytes);
  packet.used += narrow(kFragmentRoom);
  frame.total = length;
  frame.offset = 0;
  wire::put_chunk(frames_of(packet), frame, length);
  take_own_bytes_as_payload(packet, 0, length);
}

}  // namespace

void fragment(Packet& packet, std::size_t limit) {
  if (packet.size() <= limit) return;
  packet.messages = Packet::kUncounted;
  if (packet.payload == nullptr) {
    if (const std::size_t whole = whole_frames(packet, limit); whole != 0) {
      packet.rest += narrow(packet.used - whole);
      packet.used = narrow(whole);
      return;
    }
    take_own_bytes_as_payload(packet);
  }
  fragment_chunk(packet, limit);
}

void advance_fragment(Packet& packet) {
  PULLMAN_DCHECK(packet.rest > 0);
  const std::byte* from = packet.end();
  if (packet.payload != nullptr) {
    const wire::Frame head = head_of(packet);
    const std::uint64_t offset = head.offset + packet.payload_bytes;
    from = packet.payload + packet.payload_bytes;
    const bool own = packet.message == nullptr;  // other frames may follow its bytes
    const std::uint64_t data =
        own ? std::min<std::uint64_t>(packet.fragment_end - offset, packet.rest) : packet.rest;
    if (data > 0) {
      packet.payload = from;
      packet.rest -= narrow(data);
      set_chunk(packet, offset, data);
      return;
    }
  }
  std::memmove(frames_of(packet), from, packet.rest);
  packet.used = wire::kHeaderBytes + packet.rest;
  packet.payload = nullptr;
  packet.payload_bytes = 0;
  packet.rest = 0;
}

}  // namespace pullman::message
