// Many unexpected messages: message/match/unexpected_table.h, reserve.h, allowance.h, and the cost
// of short ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "base/random.h"
#include "message/match/unexpected_table.h"
#include "message_wire.h"
#include "pullman/config.h"

namespace pullman::message {
namespace {

std::unique_ptr<ShortMessage> short_message(PeerId peer, Tag tag) {
  auto message = std::make_unique<ShortMessage>();
  message->peer = peer;
  message->tag = tag;
  return message;
}

}  // namespace

TEST_CASE("the table of unexpected messages agrees with a list, as it grows and shrinks") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    UnexpectedTable table;
    std::deque<std::unique_ptr<ShortMessage>> model;
    for (int i = 0; i < 20'000; ++i) {
      const bool adds = random.chance(i < 10'000 ? 900'000 : 100'000);
      const PeerId peer{static_cast<std::uint32_t>(random.below(3)), 1};
      const Tag tag = random.below(2000) << (random.chance(500'000) ? 0 : 40);
      if (adds) {
        model.push_back(short_message(peer, tag));
        table.add(*model.back());
      } else if (!model.empty()) {
        const auto fits = [&](const auto& it) { return it->peer == peer && it->tag == tag; };
        const auto first =
            i % 16 == 0
                ? std::find_if(model.begin(), model.end(), fits)
                : model.begin() +
                      static_cast<long>(random.below(std::min<std::size_t>(8, model.size())));
        if (i % 16 == 0) {
          REQUIRE(table.find(peer, tag, 0) == (first == model.end() ? nullptr : first->get()));
        }
        if (first != model.end()) {
          table.remove(**first);
          model.erase(first);
        }
      }
      REQUIRE(table.size() == model.size());
      REQUIRE(table.buckets() <=
              std::max(model.size(), UnexpectedTable::kMinBuckets) + UnexpectedTable::kMinBuckets);
    }
    while (!model.empty()) {
      table.remove(*model.front());
      model.pop_front();
    }
    CHECK(table.empty());
  }
}

TEST_CASE("among many unexpected messages few are compared to find one") {
  constexpr std::size_t kMany = 100'000;
  UnexpectedTable table;
  std::vector<std::unique_ptr<ShortMessage>> messages;
  for (std::size_t i = 0; i < kMany; ++i) {
    messages.push_back(short_message({static_cast<std::uint32_t>(i % 7), 1}, i / 7));
    table.add(*messages.back());
  }

  std::size_t behind = 0;  // others in the same bucket, which a search from the front meets
  for (const auto& message : messages) {
    for (const Unexpected* at = message.get(); at->links.next != nullptr; at = at->links.next) {
      ++behind;
    }
  }

  CHECK(table.buckets() == kMany);
  CHECK(behind < kMany);
  for (const auto& message : messages) table.remove(*message);
  CHECK(table.buckets() <= 2 * UnexpectedTable::kMinBuckets);
}

TEST_CASE("an unexpected message of 1 to 16 bytes is charged 128 bytes, which cover its memory") {
  constexpr std::size_t kMany = 20'000;
  const std::size_t size = GENERATE(1u, 16u);
  Wire wire(kMany * kShortCharge + (1 << 20));
  std::vector<Request> sends(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    wire.outbox.send(kPeer, i, content(size, 1), sends[i]);
    if (i % 1000 == 999) wire.run();
  }
  wire.run();

  CHECK(wire.inbox.charged() == kMany * 128);
  const std::size_t piece = Slab<ShortMessage>::kPerPiece * sizeof(ShortMessage);
  const std::size_t buckets = kMany * sizeof(void*);
  CHECK(wire.memory.in_use + wire.memory.blocks * 16 + buckets <= wire.inbox.charged() + piece);

  std::vector<std::byte> buffer(size);
  for (std::size_t i = kMany; i-- > 0;) {
    Request received;
    wire.post(received, buffer, i);
    REQUIRE(received.status() == Status::kOk);
    REQUIRE(buffer == content(size, 1));
  }
  CHECK(wire.inbox.charged() == 0);
  CHECK(wire.inbox.empty());
  CHECK(wire.memory.blocks <= 1);
}

TEST_CASE("one short message that is kept holds its own piece of the slab and one more at most") {
  constexpr std::size_t kMany = 20'000;
  const std::size_t kept = GENERATE(as<std::size_t>(), 0, kMany / 2, kMany - 1);
  Wire wire(kMany * kShortCharge + (1 << 20));
  std::vector<Request> sends(kMany);
  for (std::size_t i = 0; i < kMany; ++i) {
    wire.outbox.send(kPeer, i, content(8, 1), sends[i]);
    if (i % 1000 == 999) wire.run();
  }
  wire.run();

  std::vector<std::byte> buffer(8);
  for (std::size_t i = 0; i < kMany; ++i) {
    if (i == kept) continue;
    Request received;
    wire.post(received, buffer, i);
    REQUIRE(received.status() == Status::kOk);
  }

  CHECK(wire.inbox.charged() == kShortCharge);
  CHECK(wire.memory.blocks <= 2);
  Request last;
  wire.post(last, buffer, kept);
  CHECK(last.status() == Status::kOk);
  CHECK(wire.memory.blocks <= 1);
}

TEST_CASE("1.4 million unexpected messages of seven peers fit the defaults") {
  const Config config;
  const std::uint64_t window = config.unexpected_bytes / config.max_peers;
  const std::uint64_t share = window / 2;
  Reserve reserve(config.unexpected_bytes - share * config.max_peers);
  const Terms terms{share, window, reserve};
  std::deque<AllowanceGranted> peers;
  for (int i = 0; i < 7; ++i) peers.emplace_back(terms);

  for (int i = 0; i < 200'000; ++i) {
    for (AllowanceGranted& peer : peers) {
      REQUIRE(peer.covers(kShortCharge));
      peer.charge(kShortCharge);
      if (peer.is_update_due()) peer.advertise();
    }
  }
}

TEST_CASE("one peer may borrow half of what is left, and what it borrowed is given back") {
  constexpr std::uint64_t kWindow = 1 << 16;
  Reserve reserve(64 * kWindow);
  const Terms terms{kWindow / 2, kWindow, reserve};
  const auto use_up = [](AllowanceGranted& peer) {
    while (true) {
      if (peer.is_update_due()) peer.advertise();
      if (!peer.covers(kShortCharge)) return peer.outstanding();
      peer.charge(kShortCharge);
    }
  };
  {
    AllowanceGranted one(terms);
    const std::uint64_t first = use_up(one);
    CHECK(first <= 32 * kWindow + kWindow / 2);
    CHECK(first > 31 * kWindow);
    AllowanceGranted other(terms);
    const std::uint64_t second = use_up(other);
    CHECK(second > 15 * kWindow);  // half of what is left, and its own share

    one.give_back(first);
    CHECK(use_up(other) > 20 * kWindow);
    CHECK(use_up(one) > 10 * kWindow);
    CHECK(one.outstanding() + other.outstanding() <= 65 * kWindow);
    one.end();
    one.give_back(one.outstanding());
  }
  CHECK(reserve.left() == 64 * kWindow);
}

TEST_CASE("a flooding peer leaves every other one its own share") {
  constexpr std::uint64_t kWindow = 1 << 16;
  Reserve reserve(4 * kWindow);
  const Terms terms{kWindow / 2, kWindow, reserve};
  std::deque<AllowanceGranted> floods;
  for (int i = 0; i < 20; ++i) {
    AllowanceGranted& peer = floods.emplace_back(terms);
    while (peer.covers(kShortCharge)) {
      peer.charge(kShortCharge);
      if (peer.is_update_due()) peer.advertise();
    }
    CHECK(peer.outstanding() + kShortCharge > kWindow / 2);
  }
}

TEST_CASE("a peer that says again that it is blocked is listed once, and only while it is") {
  constexpr std::uint64_t kWindow = 1 << 16;
  Reserve reserve(64 * kWindow);
  const Terms terms{kWindow / 2, kWindow, reserve};
  AllowanceGranted peer(terms);

  for (int i = 0; i < 100; ++i) {
    REQUIRE(peer.handle_blocked(peer.advertised(), kPeer));
    REQUIRE(peer.handle_blocked(peer.advertised(), kPeer));
    int listed = 0;
    reserve.for_each_blocked([&](PeerId) { return ++listed != 0; });
    REQUIRE(listed == 1);
    peer.charge(kShortCharge);
    peer.advertise();
    REQUIRE_FALSE(reserve.any_blocked());
  }
}

TEST_CASE("a blocked sender says so once per limit; a false limit is refused") {
  const std::vector<std::byte> message = content(8, 1);
  std::deque<Request> sends(2000);
  Wire wire;
  for (Request& send : sends) wire.outbox.send(kPeer, 1, message, send);
  wire.run();

  CHECK(wire.blocked);
  CHECK(wire.inbox.is_blocked());
  CHECK(wire.inbox.charged() > kShare - kShortCharge);
  CHECK_FALSE(wire.outbox.may_announce());
  CHECK_FALSE(wire.inbox.handle_blocked(wire.inbox.allowance() + 1));

  std::vector<std::byte> buffer(8);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    Request received;
    wire.post(received, buffer);
    wire.run();
    REQUIRE(received.status() == Status::kOk);
  }
  CHECK_FALSE(wire.inbox.is_blocked());
  CHECK(wire.outbox.idle());
}

TEST_CASE("memory that one peer gives back is offered to those that are blocked") {
  constexpr std::uint64_t kWindow = 1 << 16;
  Reserve reserve(2 * kWindow);
  const Terms terms{kWindow / 2, kWindow, reserve};
  AllowanceGranted one(terms);
  AllowanceGranted other(terms);
  for (AllowanceGranted* peer : {&one, &other}) {
    while (peer->covers(kShortCharge)) {
      peer->charge(kShortCharge);
      if (peer->is_update_due()) peer->advertise();
    }
  }
  REQUIRE(other.handle_blocked(other.advertised(), {1, 1}));
  CHECK(reserve.take_news());
  CHECK_FALSE(other.is_update_due());
  CHECK_FALSE(reserve.take_news());

  one.give_back(one.outstanding());

  CHECK(reserve.take_news());
  REQUIRE(other.is_update_due());
  other.advertise();
  CHECK_FALSE(other.is_blocked());
}

TEST_CASE("short messages that come early wait for their turn, synchronous or not") {
  constexpr std::size_t kMany = 200;
  Wire wire;
  std::deque<Request> sends(kMany);
  std::deque<Request> receives(kMany);
  std::vector<std::vector<std::byte>> buffers(kMany, std::vector<std::byte>(12));
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto bytes = content(12, static_cast<unsigned>(i));
    const std::span<const std::byte> whole[] = {bytes};
    SendDescriptor descriptor;
    descriptor.kind = i % 2 == 0 ? wire::kSynchronousOfKind : std::uint8_t{0};
    descriptor.tag = 1;
    descriptor.segments = whole;
    descriptor.size = bytes.size();
    descriptor.wants_result = i % 2 == 0;
    wire.outbox.send(kPeer, descriptor, sends[i]);
    if (i % 10 == 9) wire.pull();
  }
  if (GENERATE(true, false)) {
    for (std::size_t i = 0; i < kMany; ++i) wire.post(receives[i], buffers[i]);
  }

  while (!wire.in_flight.empty()) {
    CHECK(wire.deliver(*wire.in_flight.back()) == Taken::kNew);
    CHECK(wire.deliver(*wire.in_flight.back()) == Taken::kRedundant);
    wire.ack(wire.in_flight.size() - 1);
  }
  for (std::size_t i = 0; i < kMany; ++i) {
    if (receives[i].tag() == 0) wire.post(receives[i], buffers[i]);
  }
  wire.answer();
  wire.run();

  for (std::size_t i = 0; i < kMany; ++i) {
    REQUIRE(receives[i].status() == Status::kOk);
    REQUIRE(buffers[i] == content(12, static_cast<unsigned>(i)));
    REQUIRE(sends[i].status() == Status::kOk);
  }
  CHECK(wire.inbox.empty());
  CHECK(wire.inbox.charged() == 0);
}

TEST_CASE("a short message comes whole; a part of one is refused, wire.md 4.4") {
  Wire wire;

  CHECK(wire.take_chunk(0, 24, 0, 12) == Taken::kRefused);
  CHECK(wire.take_chunk(0, 24, 0, 24) == Taken::kNew);
  CHECK(wire.take_chunk(0, 24, 0, 24) == Taken::kRedundant);
  CHECK(wire.inbox.charged() == kShortCharge);
}

}  // namespace pullman::message
