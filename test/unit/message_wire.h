// One peer's messages, from an outbox to an inbox.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <vector>

#include "message/rx/inbox.h"
#include "message/tx/outbox.h"

namespace pullman::message {

inline constexpr PeerId kPeer{0, 0};
inline constexpr std::size_t kPacketBytes = 1472;
inline constexpr std::uint32_t kEager = 4096;
inline constexpr std::uint64_t kShare = 64 * 1024;

inline std::vector<std::byte> content(std::size_t size, unsigned salt) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + salt);
  return bytes;
}

// Counts the memory in use.
struct Counted : std::pmr::memory_resource {
  std::size_t in_use = 0;
  std::size_t blocks = 0;
  std::size_t most = ~std::size_t{0};  // larger allocations fail

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > most) throw std::bad_alloc();
    in_use += bytes;
    ++blocks;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override {
    in_use -= bytes;
    --blocks;
    std::pmr::new_delete_resource()->deallocate(at, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// An outbox and an inbox, connected by frames, without links. A test decides what is lost.
struct Wire {
  explicit Wire(std::uint64_t share = kShare, std::uint64_t to_lend = 0)
      : reserve(to_lend), share_(share) {
    inbox.start(kFirst);
    outbox.handle_hello(kPacketBytes, inbox.allowance(), kEager);
  }
  ~Wire() {
    for (Packet* packet : in_flight) outbox.abandon(*packet);
    outbox.fail(Status::kClosed);
    inbox.fail(Status::kClosed);
  }

  // Takes what the outbox has, up to `most` packets.
  void pull(std::size_t most = 10000) {
    while (most-- > 0) {
      Packet* packet = outbox.next_packet();
      if (packet == nullptr) return;
      in_flight.push_back(packet);
    }
  }
  // Delivers a packet's frames; it stays in flight.
  Taken deliver(const Packet& packet) {
    std::vector<std::byte> body(packet.body().begin(), packet.body().end());
    body.insert(body.end(), packet.payload, packet.payload + packet.payload_bytes);
    REQUIRE(wire::well_formed(body));
    wire::FrameReader reader(body);
    wire::Frame frame;
    Taken last = Taken::kNew;
    while (reader.next(frame)) {
      last = take(frame);
    }
    return last;
  }
  Taken take(const wire::Frame& frame) {
    if (frame.type == wire::FrameType::kMessage) return inbox.handle_message(frame);
    if (frame.type == wire::FrameType::kEnvelope) return inbox.handle_envelope(frame);
    if (frame.type == wire::FrameType::kBlocked) {
      blocked = true;
      return inbox.handle_blocked(frame.limit) ? Taken::kNew : Taken::kRefused;
    }
    return inbox.handle_chunk(frame);
  }
  // Delivers an envelope that no sender sent.
  Taken take_envelope(std::uint64_t nth, std::uint64_t total) {
    return inbox.handle_envelope({.type = wire::FrameType::kEnvelope,
                                  .id = low32(kFirst + nth),
                                  .tag = 1,
                                  .total = total,
                                  .data = {}});
  }
  // Delivers bytes of the nth message that no sender sent.
  Taken take_chunk(std::uint64_t nth, std::uint64_t total, std::uint64_t offset,
                   std::uint64_t length) {
    const auto data = content(length, 1);
    return inbox.handle_chunk({.type = wire::FrameType::kChunk,
                               .id = low32(kFirst + nth),
                               .tag = 1,
                               .total = total,
                               .offset = offset,
                               .limit = 0,
                               .data = data});
  }
  void ack(std::size_t index) {
    Packet* packet = in_flight[index];
    in_flight.erase(in_flight.begin() + static_cast<long>(index));
    outbox.handle_acked(*packet);
    packets.give_back(*packet);
  }
  // Carries the receiver's grants and allowances to the sender.
  void answer() {
    std::byte frames[2048];
    const std::size_t length = inbox.write_frames(frames, sizeof frames);
    wire::FrameReader reader({frames, length});
    wire::Frame frame;
    while (reader.next(frame)) {
      if (frame.type == wire::FrameType::kGrant) {
        REQUIRE(outbox.handle_grant(frame.id, frame.limit));
      } else if (frame.type == wire::FrameType::kAllowance) {
        outbox.handle_allowance(frame.limit, frame.total);
      } else {
        REQUIRE(frame.type == wire::FrameType::kResult);
        const auto id = outbox.id_of(frame.id);
        REQUIRE(id.has_value());
        REQUIRE(outbox.handle_result(*id, Status::kOk) == Outbox::Found::kYes);
      }
    }
  }
  // Delivers everything until nothing moves. Messages are announced when nothing is in flight.
  void run() {
    for (bool moved = true; moved;) {
      pull();
      if (in_flight.empty() && outbox.may_announce()) {
        outbox.announce();
        pull();
      }
      moved = !in_flight.empty() || inbox.has_frames();
      while (!in_flight.empty()) {
        deliver(*in_flight.front());
        ack(0);
      }
      answer();
    }
  }
  void post(Request& request, std::vector<std::byte>& buffer, Tag tag = 1, Tag ignore = 0) {
    begin(request, buffer, tag, ignore);
    if (Unexpected* message = matcher.find_or_post(request)) inbox.attach(*message, request);
  }
  static void begin(Request& request, std::vector<std::byte>& buffer, Tag tag, Tag ignore) {
    Operation& op = Operation::of(request);
    op.begin(Operation::Kind::kReceive, kPeer, tag);
    op.ignore = ignore;
    op.buffer = buffer.data();
    op.size = buffer.size();
  }

  Reserve reserve;
  std::uint64_t share_;
  bool blocked = false;  // the sender has sent a BLOCKED
  static constexpr MessageId kFirst = (MessageId{2} << 32) - 2;
  channel::PacketPool packets{4096, kPacketBytes};
  Pool<IdBitmap> bitmaps{2};
  Matcher matcher;
  Counted memory;
  Slab<ShortMessage> shorts{memory};
  InboxCounters counters;
  Pool<ActiveSends> active{1};
  Pool<SpanningMessages> spanning{1};
  OutboxCounters sent;
  OutboxResources outbox_shares{packets, bitmaps, active, spanning, sent};
  Pool<ActiveMessages> active_messages{1};
  InboxResources inbox_shares{
      matcher, memory, bitmaps, shorts, active_messages, counters, {share_, share_, reserve},
      kEager};
  Outbox outbox{outbox_shares, 0, kFirst, 556};
  Inbox inbox{inbox_shares, kPeer};
  std::vector<Packet*> in_flight;
};

}  // namespace pullman::message
