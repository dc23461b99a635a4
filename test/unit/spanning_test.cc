// Messages too long for a packet, copied into those of their neighbours
// (message/tx/message_packer.h).
#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "base/random.h"
#include "message/tx/fragments.h"
#include "message/tx/spanning_messages.h"
#include "message_wire.h"

namespace pullman::message {
namespace {

constexpr std::size_t kJustOver = 1425;  // a packet holds 1424

// Messages of one size in a row, and their receiver.
struct Stream {
  Stream(std::size_t count, std::size_t size, std::size_t packet_bytes = kPacketBytes) {
    wire.outbox.set_packet_bytes(packet_bytes);
    wire.outbox.set_small_bytes(packet_bytes);
    for (std::size_t i = 0; i < count; ++i) {
      sent_bytes.push_back(content(size, static_cast<unsigned>(i)));
      buffers.emplace_back(size);
      wire.post(receives.emplace_back(), buffers.back());
      copied += wire.outbox.send(kPeer, 1, sent_bytes.back(), sends.emplace_back());
    }
  }
  ~Stream() {
    for (Request& receive : receives) {
      if (receive.done()) continue;
      wire.matcher.remove(receive);
      Operation::of(receive).finish(Status::kCancelled, 0);
    }
  }
  std::size_t arrived() const {
    std::size_t whole = 0;
    for (std::size_t i = 0; i < receives.size(); ++i) {
      whole += receives[i].status() == Status::kOk && buffers[i] == sent_bytes[i];
    }
    return whole;
  }

  std::deque<std::vector<std::byte>> sent_bytes, buffers;
  std::deque<Request> sends, receives;
  Wire wire;  // destroyed first: it ends what is pending
  std::size_t copied = 0;
};

}  // namespace

TEST_CASE("messages too long for a packet are done when copied, and fill their packets") {
  Stream stream(20, kJustOver);
  Wire& wire = stream.wire;
  CHECK(stream.copied == 20);

  wire.pull();

  constexpr std::size_t kOfEach = kPacketBytes - wire::kHeaderBytes;
  const std::size_t heads = 2 * wire::kChunkBytes;  // one ends and the next begins
  CHECK(wire.in_flight.size() == (20 * kJustOver + kOfEach - heads - 1) / (kOfEach - heads));
  for (std::size_t i = 0; i + 1 < wire.in_flight.size(); ++i) {
    CHECK(wire.in_flight[i]->size() == kPacketBytes);
  }
  wire.run();
  CHECK(stream.arrived() == 20);
  CHECK(wire.outbox.idle());
  CHECK(wire.inbox.empty());
  CHECK(wire.packets.in_use() == 0);
}

TEST_CASE("messages of several packets arrive whole in any order of packets, with duplicates") {
  const std::uint64_t seed = GENERATE(range(1, 40));
  const std::size_t size = GENERATE(1425u, 1700u, 2048u);
  const std::size_t packet_bytes = GENERATE(576u, 1472u);
  CAPTURE(seed, size, packet_bytes);
  Random random(seed);
  Stream stream(12, size, packet_bytes);
  Wire& wire = stream.wire;
  wire.pull();
  std::vector<Packet*> order = wire.in_flight;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);

  for (const Packet* packet : order) {
    wire.deliver(*packet);
    CHECK(wire.deliver(*packet) != Taken::kRefused);
  }

  CHECK(stream.arrived() == 12);
  while (!wire.in_flight.empty()) wire.ack(random.below(wire.in_flight.size()));
  CHECK(wire.outbox.idle());
}

TEST_CASE("a message of several packets carries its immediate data") {
  const bool posted_first = GENERATE(false, true);
  for (std::size_t size = 1417; size <= MessagePacker::kMaxCopied - wire::kImmediateBytes; ++size) {
    Wire wire;
    const auto bytes = content(size, 3);
    std::vector<std::byte> buffer(size);
    Request send, receive;
    if (posted_first) wire.post(receive, buffer);
    REQUIRE(wire.outbox.send_copy(
        kPeer,
        {.kind = wire::kImmediateOfKind, .tag = 1, .immediate = 0x123456789abcdef0, .bytes = bytes},
        send));
    wire.run();
    if (!posted_first) wire.post(receive, buffer);

    REQUIRE(receive.status() == Status::kOk);
    CHECK(receive.length() == size);
    CHECK(receive.immediate() == 0x123456789abcdef0);
    CHECK(buffer == bytes);
    CHECK(wire.outbox.idle());
  }
}

// An unfinished message holds the window of ids (wire.md 4.3), and a close.
TEST_CASE("a message of several packets is finished when all of them have arrived") {
  const bool first_first = GENERATE(false, true);
  Stream stream(1, kJustOver);
  Wire& wire = stream.wire;
  wire.pull();
  REQUIRE(wire.in_flight.size() == 2);

  wire.ack(first_first ? 0 : 1);
  CHECK_FALSE(wire.outbox.idle());

  wire.ack(0);
  CHECK(wire.outbox.idle());
}

TEST_CASE("a message that shares a packet with the end of another is finished with that packet") {
  Stream stream(1, kJustOver);
  Wire& wire = stream.wire;
  const auto bytes = content(100, 1);
  Request small;
  REQUIRE(wire.outbox.send(kPeer, 1, bytes, small));
  wire.pull();
  REQUIRE(wire.in_flight.size() == 2);

  wire.ack(1);
  CHECK_FALSE(wire.outbox.idle());
  wire.ack(0);

  CHECK(wire.outbox.idle());
}

// Packets of one length leave in one burst, so one in which nothing can begin is filled.
TEST_CASE("a packet with too little room for another message is padded to the others' length") {
  const std::size_t room = GENERATE(4u, 17u, 32u, 95u);
  Stream stream(0, 0);
  Wire& wire = stream.wire;
  const auto small = content(kPacketBytes - wire::kHeaderBytes - wire::kMessageBytes - room, 1);
  const auto bytes = content(kJustOver, 2);
  std::vector<std::byte> first(small.size()), second(bytes.size());
  Request send_small, send, receive_small, receive;
  wire.post(receive_small, first);
  wire.post(receive, second);
  wire.outbox.send(kPeer, 1, small, send_small);
  wire.outbox.send(kPeer, 1, bytes, send);

  wire.pull();

  REQUIRE(wire.in_flight.size() == 3);
  CHECK(wire.in_flight[0]->size() == kPacketBytes);
  CHECK(wire.in_flight[1]->size() == kPacketBytes);
  for (const Packet* packet : wire.in_flight) {
    const std::vector<std::byte> body(packet->body().begin(), packet->body().end());
    wire::FrameReader reader(body);
    for (wire::Frame frame; reader.next(frame);) {
      if (frame.type != wire::FrameType::kPadding) wire.take(frame);
    }
    CHECK(reader.ok());
  }
  CHECK(first == small);
  CHECK(second == bytes);
  while (!wire.in_flight.empty()) wire.ack(0);
  CHECK(wire.outbox.idle());
}

TEST_CASE("a message waits uncopied while there are packets for only a part of it") {
  channel::PacketPool packets(3, kPacketBytes);
  Pool<IdBitmap> bitmaps(2);
  Pool<ActiveSends> active(1);
  Pool<SpanningMessages> spanning(1);
  OutboxCounters counters;
  const OutboxResources shared{packets, bitmaps, active, spanning, counters};
  Outbox outbox(shared, 0, 1, kPacketBytes);
  outbox.handle_hello(kPacketBytes, kShare, kEager);
  const auto most = content(MessagePacker::kMaxCopied, 1);
  const auto bytes = content(kJustOver, 2);
  Request first, second, third;
  Packet* const others[] = {packets.take(kPacketBytes), packets.take(kPacketBytes)};
  CHECK_FALSE(outbox.send_copy(kPeer, {.tag = 1, .bytes = most}, first));  // one of two is free
  CHECK(packets.in_use() == 2);
  for (Packet* other : others) packets.give_back(*other);
  REQUIRE(outbox.send(kPeer, 1, most, first));
  REQUIRE(outbox.send(kPeer, 1, bytes, second));
  CHECK_FALSE(outbox.send(kPeer, 1, bytes, third));

  CHECK(packets.in_use() == 3);
  Packet* packet = outbox.next_packet();
  outbox.handle_acked(*packet);
  packets.give_back(*packet);
  CHECK_FALSE(third.done());
  packet = outbox.next_packet();  // frees one for the other
  CHECK(third.done());
  std::vector<Packet*> rest{packet};
  while ((packet = outbox.next_packet()) != nullptr) rest.push_back(packet);
  for (Packet* one : rest) {
    outbox.handle_acked(*one);
    packets.give_back(*one);
  }
  CHECK(outbox.idle());
}

TEST_CASE("packets of copied messages leave in fragments after the path has become narrow") {
  const std::size_t limit = GENERATE(576u, 700u, 1100u, 1400u);
  Stream stream(6, 1900);
  Wire& wire = stream.wire;
  wire.pull();

  std::vector<Packet*> packets;
  packets.swap(wire.in_flight);
  for (Packet* packet : packets) {
    for (;;) {
      fragment(*packet, limit);
      CHECK(packet->size() <= limit);
      CHECK(wire.deliver(*packet) == Taken::kNew);
      if (packet->rest == 0) break;
      CHECK_FALSE(wire.outbox.idle());
      wire.outbox.handle_fragment_acked(*packet);
    }
    wire.outbox.handle_acked(*packet);
    wire.packets.give_back(*packet);
  }

  CHECK(stream.arrived() == 6);
  CHECK(wire.outbox.idle());
}

// Answers wait for packets only; the last one empties the queues.
TEST_CASE(
    "answers that waited for packets leave when there are some, and nothing of them is left") {
  const std::size_t size = GENERATE(1000u, 1400u);
  Wire wire;
  const auto bytes = content(size, 1);
  const std::span<const std::byte> whole = bytes;
  std::deque<Request> sends(GENERATE(65u, 70u, 200u));
  for (Request& send : sends) {
    wire.outbox.send(kPeer,
                     {.kind = wire::kImmediateOfKind,
                      .tag = 1,
                      .lead_bytes = wire::kImmediateBytes,
                      .segments = {&whole, 1},
                      .size = size,
                      .is_solicited = true},
                     send);
  }

  while (Packet* packet = wire.outbox.next_packet()) {
    wire.outbox.handle_acked(*packet);
    wire.packets.give_back(*packet);
  }

  for (const Request& send : sends) CHECK(send.status() == Status::kOk);
  CHECK(wire.outbox.idle());
}

TEST_CASE("when the peer ends nothing is left of messages of several packets") {
  Stream stream(3, kJustOver);
  Wire& wire = stream.wire;
  wire.pull(1);
  for (Packet* packet : wire.in_flight) wire.outbox.abandon(*packet);
  wire.in_flight.clear();

  wire.outbox.fail(Status::kPeerDied);

  CHECK(wire.packets.in_use() == 0);
  CHECK(wire.active.in_use() == 0);
  CHECK(wire.spanning.in_use() == 0);
}

TEST_CASE("ids that are a window apart do not share a count") {
  SpanningMessages messages;
  messages.add(7, 2);
  CHECK_FALSE(messages.note_arrived(7));
  CHECK(messages.note_arrived(7));
  CHECK(messages.empty());

  messages.add(7 + kIdWindow, 3);
  CHECK_FALSE(messages.note_arrived(7 + kIdWindow));
  messages.clear();
  CHECK(messages.empty());
  CHECK(messages.note_arrived(7 + kIdWindow));  // as for an id that was not added
}

}  // namespace pullman::message
