// message/tx/outbox.h and message/rx/inbox.h, connected by the frames of their packets.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <vector>

#include "base/random.h"
#include "message/rx/remote_operations.h"
#include "message_wire.h"
#include "pullman/config.h"

namespace pullman::message {

TEST_CASE("messages of every size arrive whole, expected or not") {
  const std::size_t inline_limit = kPacketBytes - wire::kHeaderBytes - wire::kMessageBytes;
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, inline_limit - 1, inline_limit,
                           inline_limit + 1, std::size_t{kEager} - 1, std::size_t{kEager},
                           std::size_t{kEager} + 1, std::size_t{100'000}}) {
    for (bool posted_first : {true, false}) {
      Wire wire;
      const auto bytes = content(size, 7);
      std::vector<std::byte> buffer(size);
      Request sent;
      Request received;

      if (posted_first) wire.post(received, buffer);
      const bool copied = wire.outbox.send(kPeer, 1, bytes, sent);
      wire.run();
      if (!posted_first) wire.post(received, buffer);
      wire.run();

      CHECK(copied == (size <= std::max(inline_limit, MessagePacker::kMaxCopied)));
      CHECK(sent.status() == Status::kOk);
      REQUIRE(received.status() == Status::kOk);
      CHECK(received.length() == size);
      CHECK(buffer == bytes);
      CHECK(wire.inbox.empty());
      CHECK(wire.inbox.charged() == 0);
      CHECK(wire.outbox.idle());
    }
  }
}

TEST_CASE("small messages sent together share a packet") {
  Wire wire;
  std::vector<Request> sends(20);
  for (Request& send : sends) wire.outbox.send(kPeer, 1, content(8, 1), send);

  wire.pull();

  CHECK(wire.in_flight.size() == 1);
}

TEST_CASE("a message delivered twice is received once") {
  Wire wire;
  std::vector<std::byte> buffer(8);
  std::vector<std::byte> spare(8);
  Request sent;
  Request first;
  Request second;
  wire.post(first, buffer);
  wire.post(second, spare);
  wire.outbox.send(kPeer, 1, content(8, 1), sent);
  wire.pull();

  CHECK(wire.deliver(*wire.in_flight[0]) == Taken::kNew);
  CHECK(wire.deliver(*wire.in_flight[0]) == Taken::kRedundant);

  CHECK(first.done());
  CHECK_FALSE(second.done());
  wire.matcher.remove(second);
  Operation::of(second).finish(Status::kCancelled, 0);
}

TEST_CASE(
    "bytes for which there is no memory count as not arrived, and are taken when they come again") {
  Wire wire;
  const auto bytes = content(GENERATE(500, 5000), 7);
  std::vector<std::byte> buffer(bytes.size());
  Request sent;
  Request received;
  wire.outbox.send(kPeer, 1, bytes, sent);
  wire.pull();

  wire.memory.most = 400;
  for (const Packet* packet : wire.in_flight) CHECK(wire.deliver(*packet) == Taken::kRefused);
  wire.memory.most = bytes.size();
  wire.run();
  wire.post(received, buffer);
  wire.run();

  REQUIRE(received.status() == Status::kOk);
  CHECK(buffer == bytes);
  CHECK(wire.memory.blocks == 0);
}

TEST_CASE("an empty message that waits for its turn is recognised when it comes again") {
  Wire wire;
  Request sends[2];
  wire.outbox.send(kPeer, 1, content(1400, 1), sends[0]);
  wire.pull();
  wire.outbox.send(kPeer, 1, {}, sends[1]);
  wire.pull();
  REQUIRE(wire.in_flight.size() == 2);

  CHECK(wire.deliver(*wire.in_flight[1]) == Taken::kNew);
  CHECK(wire.deliver(*wire.in_flight[1]) == Taken::kRedundant);
}

TEST_CASE("messages match in the order they were sent, however they arrive") {
  Wire wire;
  Request sends[3];
  Request receives[3];
  std::vector<std::byte> buffers[3];
  for (unsigned i = 0; i < 3; ++i) {
    wire.outbox.send(kPeer, 1, content(1400, i), sends[i]);  // a packet each
    buffers[i].resize(1400);
    wire.post(receives[i], buffers[i]);
  }
  wire.pull();
  REQUIRE(wire.in_flight.size() == 3);

  wire.deliver(*wire.in_flight[2]);
  wire.deliver(*wire.in_flight[1]);
  CHECK_FALSE(receives[0].done());
  wire.deliver(*wire.in_flight[0]);

  for (unsigned i = 0; i < 3; ++i) {
    REQUIRE(receives[i].status() == Status::kOk);
    CHECK(buffers[i] == content(1400, i));
  }
}

TEST_CASE("a message longer than its receive is truncated and says so; the next is unharmed") {
  for (std::size_t size : {std::size_t{100}, std::size_t{3000}, std::size_t{50'000}}) {
    Wire wire;
    const auto bytes = content(size, 3);
    std::vector<std::byte> small(10);
    std::vector<std::byte> whole(size);
    Request sends[2];
    Request receives[2];
    wire.post(receives[0], small);
    wire.post(receives[1], whole);
    wire.outbox.send(kPeer, 1, bytes, sends[0]);
    wire.outbox.send(kPeer, 1, bytes, sends[1]);
    wire.run();

    CHECK(receives[0].status() == Status::kTruncated);
    CHECK(receives[0].length() == 10);
    CHECK(receives[0].message_length() == size);
    CHECK(std::memcmp(small.data(), bytes.data(), 10) == 0);
    CHECK(receives[1].status() == Status::kOk);
    CHECK(whole == bytes);
    CHECK(sends[0].status() == Status::kOk);
  }
}

TEST_CASE("of a long unmatched message only the eager bytes are sent, wire.md 4.5") {
  Wire wire;
  const auto bytes = content(100'000, 5);
  Request sent;
  wire.outbox.send(kPeer, 1, bytes, sent);
  wire.run();

  CHECK_FALSE(sent.done());
  CHECK(wire.inbox.charged() == charge_of(100'000, kEager));

  std::vector<std::byte> buffer(bytes.size());
  Request received;
  wire.post(received, buffer);
  wire.run();
  CHECK(received.status() == Status::kOk);
  CHECK(buffer == bytes);
  CHECK(sent.status() == Status::kOk);
}

TEST_CASE("a later message is not blocked by a long unmatched one") {
  Request blocked;  // outlives the wire, which finishes it
  Wire wire;
  const auto bytes = content(100'000, 5);
  std::vector<std::byte> buffer(8);
  Request sent;
  Request received;
  wire.outbox.send(kPeer, 1, bytes, blocked);
  wire.outbox.send(kPeer, 2, content(8, 1), sent);
  wire.post(received, buffer, 2);

  wire.run();

  CHECK(received.status() == Status::kOk);
}

TEST_CASE("unexpected messages hold the sender to its allowance, wire.md 4.6") {
  Wire wire;
  std::deque<Request> sends(2000);
  const auto bytes = content(100, 1);
  for (Request& send : sends) wire.outbox.send(kPeer, 1, bytes, send);
  wire.run();

  CHECK(wire.inbox.charged() <= kShare);
  CHECK(wire.inbox.charged() > kShare - 1024);
  CHECK(wire.sent.announced > 0);
  CHECK(wire.outbox.unfinished() > 1000);

  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> buffer(100);
    Request received;
    wire.post(received, buffer);
    wire.run();
    REQUIRE(received.status() == Status::kOk);
    REQUIRE(buffer == bytes);
  }
  CHECK(wire.outbox.idle());
  CHECK(wire.inbox.charged() == 0);
}

TEST_CASE("without allowance messages are announced by envelopes, and each can be received, 4.12") {
  const std::size_t size = GENERATE(0u, 1u, 100u, std::size_t{kEager}, kEager + 1, 20'000u);
  const auto bytes = content(size, 7);
  const auto others = content(1000, 1);
  std::deque<Request> sends(60);  // 47 fit the allowance
  Wire wire;
  for (Request& send : sends) wire.outbox.send(kPeer, 1, others, send);
  Request last;
  wire.outbox.send(kPeer, 2, bytes, last);
  wire.run();
  REQUIRE_FALSE(sends.back().done());
  REQUIRE(wire.inbox.charged() <= kShare);

  std::vector<std::byte> buffer(size);
  Request received;
  wire.post(received, buffer, 2);
  wire.run();

  CHECK(received.status() == Status::kOk);
  CHECK(buffer == bytes);
  CHECK(last.status() == Status::kOk);
  CHECK_FALSE(sends.back().done());
  for (std::size_t i = 0; i < sends.size(); ++i) {
    std::vector<std::byte> other(1000);
    Request next;
    wire.post(next, other);
    wire.run();
    REQUIRE(next.status() == Status::kOk);
    REQUIRE(other == others);
    REQUIRE(sends[i].status() == Status::kOk);  // in the order they were sent
  }
  CHECK(wire.outbox.idle());
  CHECK(wire.inbox.empty());
  CHECK(wire.inbox.charged() == 0);
}

TEST_CASE("of an announced message only the bytes that its receive has room for are sent") {
  const std::size_t room = GENERATE(0u, 10u);
  const std::size_t size = GENERATE(3000u, 20'000u);
  const auto bytes = content(size, 7);
  const auto others = content(1000, 1);
  std::deque<Request> sends(60);
  Request last;
  Wire wire;
  for (Request& send : sends) wire.outbox.send(kPeer, 1, others, send);
  wire.outbox.send(kPeer, 2, bytes, last);
  wire.run();

  std::vector<std::byte> buffer(room);
  Request received;
  wire.post(received, buffer, 2);
  wire.run();

  CHECK(received.status() == Status::kTruncated);
  CHECK(received.message_length() == size);
  CHECK(Operation::of(last).sent == room);
  CHECK(last.status() == Status::kOk);
}

TEST_CASE("an envelope that is repeated, or beyond the allowance, changes nothing") {
  Wire wire;

  CHECK(wire.take_envelope(0, 5000) == Taken::kNew);
  CHECK(wire.take_envelope(0, 5000) == Taken::kRedundant);
  CHECK(wire.take_envelope(0, 5001) == Taken::kRefused);
  for (std::uint64_t i = 1; i < kShare / kMessageCharge; ++i) {
    REQUIRE(wire.take_envelope(i, 5000) == Taken::kNew);
  }
  CHECK(wire.take_envelope(kShare / kMessageCharge, 5000) == Taken::kRefused);
  CHECK(wire.inbox.charged() == kShare);
  CHECK(wire.memory.in_use <= kShare);
}

TEST_CASE("bytes of an announced message that were not granted are refused") {
  Wire wire;
  REQUIRE(wire.take_envelope(0, 5000) == Taken::kNew);

  CHECK(wire.take_chunk(0, 5000, 0, 1000) == Taken::kRefused);
  std::vector<std::byte> buffer(1000);
  Request received;
  wire.post(received, buffer, 1);
  CHECK(wire.take_chunk(0, 5000, 1000, 1000) == Taken::kRefused);
  CHECK(wire.take_chunk(0, 5000, 0, 1000) == Taken::kNew);
  CHECK(received.status() == Status::kTruncated);
}

TEST_CASE("any number of messages are announced, and granted in reverse order, wire.md 4.3") {
  constexpr std::size_t kMany = 18'000;
  const auto bytes = content(kEager + 1, 7);
  std::deque<Request> sends(kMany);
  Wire wire(40 << 20);
  for (std::size_t i = 0; i < kMany; ++i) wire.outbox.send(kPeer, i, bytes, sends[i]);
  wire.run();
  REQUIRE(wire.sent.announced > 2 * kIdWindow);
  REQUIRE(wire.matcher.find({kPeer, kMany - 1, 0}) != nullptr);

  std::vector<std::byte> buffer(bytes.size());
  for (std::size_t i = kMany; i-- > 0;) {
    Request received;
    wire.post(received, buffer, i);
    wire.run();
    REQUIRE(received.status() == Status::kOk);
    REQUIRE(buffer == bytes);
    REQUIRE(sends[i].status() == Status::kOk);
  }
  CHECK(wire.outbox.idle());
  CHECK(wire.inbox.empty());
}

TEST_CASE("long messages that are not received keep no ids from others, wire.md 4.3") {
  constexpr std::size_t kMany = 2 * kIdWindow;
  const auto bytes = content(kEager + 1, 7);
  std::deque<Request> sends(kMany);
  Wire wire(kMany * 4 * kEager);
  for (Request& send : sends) wire.outbox.send(kPeer, 1, bytes, send);

  wire.run();

  for (Request& send : sends) {
    REQUIRE(Operation::of(send).stage == static_cast<std::uint32_t>(SendStage::kAwaitingGrant));
  }
}

TEST_CASE("an envelope for a message that has begun is refused") {
  Wire wire;
  REQUIRE(wire.take_chunk(0, 5000, 0, 1000) == Taken::kNew);

  CHECK(wire.take_envelope(0, 5000) == Taken::kRefused);
}

TEST_CASE("a granted message that was announced leaves ahead of those sent after it") {
  const auto bytes = content(2500, 7);
  std::deque<Request> sends(60);
  Wire wire;
  for (Request& send : sends) wire.outbox.send(kPeer, 1, bytes, send);
  wire.run();
  std::size_t first = 0;  // the first that was announced
  while (!Operation::of(sends[first]).special.is_announced) ++first;

  wire.outbox.handle_allowance(1 << 20, 1 << 20);
  wire.pull(1);
  REQUIRE(wire.outbox.handle_grant(low32(Operation::of(sends[first + 1]).message), 2500));
  REQUIRE(wire.outbox.handle_grant(low32(Operation::of(sends[first]).message), 2500));
  wire.pull(4);

  CHECK(wire.in_flight[1]->message == &sends[first]);
  CHECK(wire.in_flight[2]->message == &sends[first]);
  CHECK(wire.in_flight[3]->message == &sends[first + 1]);
}

TEST_CASE("a repeated GRANT sends nothing again") {
  const auto bytes = content(2000, 7);
  std::deque<Request> sends(60);
  Wire wire;
  for (Request& send : sends) wire.outbox.send(kPeer, 1, bytes, send);
  wire.run();
  std::size_t first = 0;
  while (!Operation::of(sends[first]).special.is_announced) ++first;
  const std::uint32_t id = low32(Operation::of(sends[first]).message);

  REQUIRE(wire.outbox.handle_grant(id, 2000));
  wire.pull(1);
  const std::uint64_t sent = Operation::of(sends[first]).sent;
  REQUIRE(sent < 2000);
  REQUIRE(wire.outbox.handle_grant(id, 2000));
  wire.pull();
  REQUIRE(wire.outbox.handle_grant(id, 2000));
  wire.pull();

  CHECK(wire.in_flight.size() == 2);
}

TEST_CASE("messages beyond the sender's allowance are refused") {
  std::deque<Request> sends(700);
  Wire wire;
  wire.outbox.handle_allowance(1 << 30, 1 << 30);  // more than was allowed
  Taken last = Taken::kNew;
  for (Request& send : sends) {
    wire.outbox.send(kPeer, 1, content(1000, 1), send);
    wire.pull();
    if (last == Taken::kNew) last = wire.deliver(*wire.in_flight.back());
    wire.ack(0);
  }
  CHECK(last == Taken::kRefused);
  CHECK(wire.inbox.charged() <= kShare);
}

TEST_CASE("grants that contradict what was sent are refused, wire.md 4.5") {
  Request sent;  // outlives the wire, which finishes it
  Wire wire;
  const auto bytes = content(100'000, 5);
  wire.outbox.send(kPeer, 1, bytes, sent);
  wire.pull();

  CHECK_FALSE(wire.outbox.handle_grant(low32(Wire::kFirst), bytes.size() + 1));
  CHECK_FALSE(wire.outbox.handle_grant(low32(Wire::kFirst), kEager - 1));
  CHECK_FALSE(wire.outbox.handle_grant(low32(Wire::kFirst + 1), kEager));  // not sent yet
  CHECK(wire.outbox.handle_grant(low32(Wire::kFirst), bytes.size()));
  CHECK(wire.outbox.handle_grant(low32(Wire::kFirst), bytes.size()));  // repeated: ignored
}

TEST_CASE("a chunk that contradicts its message is refused") {
  Wire wire;
  const auto data = content(100, 1);
  const auto chunk = [&](std::uint64_t total, Tag tag, std::uint64_t offset) {
    return wire.inbox.handle_chunk({.type = wire::FrameType::kChunk,
                                    .id = low32(Wire::kFirst),
                                    .tag = tag,
                                    .total = total,
                                    .offset = offset,
                                    .limit = 0,
                                    .data = data});
  };
  REQUIRE(chunk(2000, 1, 0) == Taken::kNew);
  CHECK(chunk(2001, 1, 100) == Taken::kRefused);
  CHECK(chunk(2000, 2, 100) == Taken::kRefused);
  CHECK(chunk(2000, 1, 0) == Taken::kRedundant);
  CHECK(chunk(2000, 1, 1900) == Taken::kNew);
}

TEST_CASE("a chunk without tag and total is taken only for granted bytes, wire.md 2.12") {
  std::vector<std::byte> place(kEager);
  Request whole;  // outlives the wire, which finishes it
  Wire wire;
  const std::uint64_t total = 3 * kEager;
  const std::uint64_t wanted = 2 * kEager;
  const auto bulk = [&](std::uint64_t nth, std::uint64_t offset, std::uint64_t length) {
    return wire.take_chunk(nth, 0, offset, length);
  };
  CHECK(bulk(0, kEager, 100) == Taken::kRefused);  // not begun
  REQUIRE(wire.take_chunk(0, total, 0, kEager) == Taken::kNew);
  CHECK(bulk(0, kEager, 100) == Taken::kRefused);  // not matched: nothing was granted
  CHECK(bulk(0, 100, 100) == Taken::kRefused);     // nor of bytes that have come

  std::vector<std::byte> buffer(wanted);
  Request request;
  wire.post(request, buffer);

  CHECK(bulk(0, wanted - 50, 100) == Taken::kRefused);  // beyond what is wanted
  CHECK(bulk(0, total - 50, 100) == Taken::kRefused);   // beyond the message's end
  CHECK(bulk(1, kEager, 100) == Taken::kRefused);       // another message's
  CHECK(bulk(0xFFFF, kEager, 100) == Taken::kRefused);  // and far beyond
  CHECK(bulk(0, kEager - 1, 1001) == Taken::kNew);      // all of its bytes are granted
  CHECK(bulk(0, kEager, 1000) == Taken::kRedundant);
  CHECK(bulk(0, kEager + 900, wanted - kEager - 900) == Taken::kNew);
  CHECK(request.status() == Status::kTruncated);
  CHECK(bulk(0, kEager, 1000) == Taken::kRedundant);  // the message is complete

  wire.post(whole, place);
  REQUIRE(wire.take_chunk(1, kEager, 0, 100) == Taken::kNew);
  CHECK(bulk(1, 100, 100) == Taken::kRefused);  // it needs no grant, and had none
}

TEST_CASE("what a peer makes us remember is within its charge, however small its chunks") {
  const std::uint64_t total = GENERATE(25u, 26u, 511u, 513u, 4096u, 4097u, 1'000'000u);
  Wire wire;
  std::uint64_t refused = 0;
  for (std::uint32_t m = 0; m < 200; ++m) {
    const std::uint64_t least = total == 1 ? 0 : 1;
    for (std::uint64_t at = least; at < std::min<std::uint64_t>(total, kEager); at += 2) {
      const Taken taken = wire.take_chunk(m, total, at, 1);
      if (taken == Taken::kRefused) ++refused;
      REQUIRE(wire.memory.in_use + wire.memory.blocks * 16 <= wire.inbox.charged());
    }
  }

  CHECK(wire.inbox.charged() <= kShare);
  CHECK(wire.inbox.charged() > kShare / 2);
  CHECK((refused > 0) == (total > 2));
}

TEST_CASE("the shortest chunks that an honest sender cuts are taken in any order, wire.md 4.4") {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Wire wire;
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t at = 0; at < kEager; at += kBytesPerRange) offsets.push_back(at);
    for (std::size_t i = offsets.size(); i > 1; --i) {
      std::swap(offsets[i - 1], offsets[random.below(i)]);
    }
    for (const std::uint64_t at : offsets) {
      const std::uint64_t rest = kEager - 1 - at;  // the last one is shorter
      REQUIRE(wire.take_chunk(0, kEager - 1, at, std::min(kBytesPerRange, rest)) == Taken::kNew);
    }
  }
}

TEST_CASE("a chunk refused for its gaps is taken when those before it have closed") {
  Wire wire;
  const std::uint64_t most = 1 + 2000 / kBytesPerRange;
  for (std::uint64_t i = 1; i <= most; ++i)
    REQUIRE(wire.take_chunk(0, 2000, 2 * i, 1) == Taken::kNew);

  CHECK(wire.take_chunk(0, 2000, 1000, 1) == Taken::kRefused);
  CHECK(wire.take_chunk(0, 2000, 0, 2) == Taken::kNew);  // bytes in order are not refused
  CHECK(wire.take_chunk(0, 2000, 1000, 1) == Taken::kNew);
}

TEST_CASE("messages that are received but incomplete are charged for, which limits their number") {
  std::deque<Request> receives(2000);
  std::vector<std::byte> buffer(8);
  Wire wire;
  for (Request& receive : receives) wire.post(receive, buffer);
  std::size_t begun = 0;
  std::byte frames[64];

  std::size_t least = kShare / kMessageCharge - 20;

  SECTION("long messages, whose GRANTs and ALLOWANCEs do not leave") {
    while (begun < receives.size() && wire.take_chunk(begun, 100'000, 0, kEager) == Taken::kNew) {
      ++begun;
    }
    least = kShare / charge_of(100'000, kEager) - 1;
  }
  SECTION("messages that lack a byte") {
    while (begun < receives.size() && wire.take_chunk(begun, 25, 0, 1) == Taken::kNew) {
      wire.inbox.write_frames(frames, sizeof(frames));
      ++begun;
    }
  }

  CHECK(begun <= kShare / kMessageCharge);
  CHECK(begun > least);
  CHECK(wire.inbox.charged() == begun * kMessageCharge);
  while (Request* posted = wire.matcher.any_posted()) {
    wire.matcher.remove(*posted);
    Operation::of(*posted).finish(Status::kCancelled, 0);
  }
}

TEST_CASE("an eager message fits the part of an allowance that may be spent, for every share") {
  for (std::uint64_t share = kLeastAllowance; share < (1 << 22); share += 500) {
    // The engine's choice.
    const std::uint64_t eager =
        std::clamp<std::uint64_t>(share / 2 - kMessageCharge, kLeastEager, 1 << 20);
    REQUIRE(charge_of(eager, eager) <= share - share / 4);
  }
  const Config config;
  CHECK(config.unexpected_bytes / config.max_peers / 2 - kMessageCharge >= config.eager_bytes);
}

TEST_CASE("when the peer ends every operation finishes once, and whole messages stay") {
  Wire wire;
  const auto bytes = content(100'000, 5);
  std::vector<std::byte> buffer(bytes.size());
  Request whole;
  Request filling;
  Request half;
  wire.outbox.send(kPeer, 2, content(8, 1), whole);
  wire.outbox.send(kPeer, 1, bytes, half);
  wire.post(filling, buffer);
  wire.pull(2);
  wire.deliver(*wire.in_flight[0]);
  wire.deliver(*wire.in_flight[1]);
  while (!wire.in_flight.empty()) {
    wire.outbox.abandon(*wire.in_flight.back());
    wire.in_flight.pop_back();
  }

  wire.outbox.fail(Status::kUnreachable);
  wire.inbox.fail(Status::kUnreachable);

  CHECK(half.status() == Status::kUnreachable);
  CHECK(filling.status() == Status::kUnreachable);
  Unexpected* kept = wire.matcher.find({kPeer, 2, 0});
  REQUIRE(kept != nullptr);
  std::vector<std::byte> last(8);
  Request received;
  wire.post(received, last, 2);
  CHECK(received.status() == Status::kOk);
  CHECK(wire.inbox.empty());
}

TEST_CASE("any order and repetition of packets delivers every message once and whole") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Wire wire;
    constexpr std::size_t kCount = 30;
    std::deque<Request> sends(kCount);
    std::deque<Request> receives(kCount);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::vector<std::byte>> buffers(kCount);
    for (unsigned i = 0; i < kCount; ++i) {
      bytes.push_back(content(random.below(i % 3 == 0 ? 20'000 : 300), i));
      wire.outbox.send(kPeer, 1, bytes.back(), sends[i]);
    }
    std::size_t posted = 0;
    std::size_t done = 0;
    for (int turn = 0; turn < 20000 && done < kCount; ++turn) {
      if (posted < kCount && random.chance(100'000)) {
        buffers[posted].resize(20'000);
        wire.post(receives[posted], buffers[posted]);
        ++posted;
      }
      wire.pull(random.below(4));
      if (!wire.in_flight.empty()) {
        const std::size_t pick = random.below(wire.in_flight.size());
        REQUIRE(wire.deliver(*wire.in_flight[pick]) != Taken::kRefused);
        if (random.chance(500'000)) wire.ack(pick);
      }
      if (random.chance(300'000)) wire.answer();
      while (done < posted && receives[done].done()) {
        REQUIRE(receives[done].length() == bytes[done].size());
        REQUIRE(std::equal(bytes[done].begin(), bytes[done].end(), buffers[done].begin()));
        ++done;
      }
    }
    REQUIRE(done == kCount);
    wire.run();
    REQUIRE(wire.outbox.idle());
  }
}

// Asked one question, whose answer is to be written to a buffer.
struct Question final : RemoteOperations {
  Request* find_pending(MessageId) override { return asker; }
  void remove_pending(Request&) override { asker = nullptr; }
  void answer(const Asker&, std::span<const std::byte>) override {}
  void answer_with_copy(const Asker&, std::span<const std::byte>) override {}

  Request* asker = nullptr;
};

TEST_CASE("the second of two answers to one question is granted its bytes, and dropped") {
  constexpr std::size_t kSize = 100'000;
  Wire wire;
  Regions regions;
  wire.inbox_shares.regions = &regions;
  Question question;
  Request request;
  std::vector<std::byte> buffer(kSize);
  Wire::begin(request, buffer, 1, 0);
  question.asker = &request;
  Inbox inbox(wire.inbox_shares, kPeer, &question);
  inbox.start(Wire::kFirst);
  const auto bytes = content(kSize, 1);
  const auto answer = [&](std::uint64_t nth, std::size_t offset, std::size_t length) {
    return inbox.handle_chunk({.type = wire::FrameType::kChunk,
                               .kind = wire::kind_of(wire::Class::kAnswer),
                               .id = low32(Wire::kFirst + nth),
                               .tag = 7,
                               .total = kSize,
                               .offset = offset,
                               .data = std::span(bytes).subspan(offset, length)});
  };
  REQUIRE(answer(1, 0, 1000) == Taken::kNew);  // both begin before the turn of either
  REQUIRE(answer(0, 0, 1000) == Taken::kNew);

  std::byte frames[2048];
  const std::size_t length = inbox.write_frames(frames, sizeof frames);
  wire::FrameReader reader({frames, length});
  std::uint64_t granted = 0;
  for (wire::Frame frame; reader.next(frame);) {
    if (frame.type == wire::FrameType::kGrant && frame.id == low32(Wire::kFirst + 1)) {
      granted = frame.limit;
    }
  }
  CHECK(granted == kEager);  // no more than it may send anyway
  answer(1, 1000, kEager - 1000);
  answer(0, 1000, kSize - 1000);

  CHECK(request.status() == Status::kOk);
  CHECK(buffer == bytes);
  inbox.fail(Status::kClosed);
}

}  // namespace pullman::message
