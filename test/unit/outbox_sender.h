// An outbox without a link: what it cuts is kept, and noted.
#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "message/tx/outbox.h"

namespace pullman::message {

// Sends whatever is to be cut, and notes of which messages it is.
struct OutboxSender {
  static constexpr std::size_t kPacket = 1472;
  static constexpr std::size_t kEager = 16'384;
  static constexpr MessageId kFirst = 9;

  explicit OutboxSender(std::uint64_t allowance = 1 << 30, std::uint32_t eager = kEager) {
    outbox.handle_hello(kPacket, allowance, eager);
  }
  ~OutboxSender() {
    for (Packet* packet : left) outbox.abandon(*packet);
    outbox.fail(Status::kClosed);
  }

  void send(std::size_t bytes) {
    outbox.send({}, 5, {message.data(), bytes}, requests.emplace_back());
  }
  void send_ahead(std::size_t bytes) {
    const std::span<const std::byte> segment(message.data(), bytes);
    const SendDescriptor descriptor{
        .tag = 5, .segments = {&segment, 1}, .size = bytes, .has_priority = true};
    outbox.send({}, descriptor, requests.emplace_back());
  }
  void grant(std::uint32_t id) { REQUIRE(outbox.handle_grant(id, message.size())); }

  // The message that packets or a run left of; 0: nothing did.
  std::uint32_t next() {
    if (channel::Run* run =
            outbox.next_run({.max_chunks = 4, .equal_lengths = true, .heads = kHeads})) {
      left.push_back(run);
      chunks = run->count;
      asks = run->wants_ack;
      return head_of(*run).id;
    }
    Packet* packet = outbox.next_packet(kHeads);
    if (packet == nullptr) return 0;
    left.push_back(packet);
    chunks = 1;
    asks = packet->wants_ack;
    return head_of(*packet).id;
  }
  wire::Frame head_of(const Packet& packet) {
    was_bulk = packet.is_bulk;
    if (was_bulk) return wire::bulk_head(packet.bytes + wire::kBulkHeaderBytes);
    return wire::chunk_head(packet.bytes + wire::kHeaderBytes);
  }

  static constexpr auto kHeads = Outbox::Heads::kBulk;
  std::vector<std::byte> message = std::vector<std::byte>(10 * kEager);
  channel::PacketPool pool{1024, kPacket};
  Pool<IdBitmap> ids{2};
  Pool<ActiveSends> active{1};
  Pool<SpanningMessages> spanning{1};
  OutboxCounters counters;
  OutboxResources resources{pool, ids, active, spanning, counters};
  std::deque<Request> requests;
  std::vector<Packet*> left;
  Outbox outbox{resources, 0, kFirst, kPacket};
  std::uint32_t chunks = 0;
  bool was_bulk = false;
  bool asks = false;  // for its ACK: the last of them
};

}  // namespace pullman::message
