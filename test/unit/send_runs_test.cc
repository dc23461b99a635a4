// engine/runs.cc: the form of runs, and what becomes of them when the port has no room.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "list_end.h"
#include "wire/header.h"

namespace pullman {
namespace {

constexpr Tag kTag = 5;
constexpr std::size_t kEager = 4096;

struct Options {
  bool bursts = false;
  bool checksum = false;
  std::size_t eager = kEager;
  std::size_t window = 4096;
  std::size_t packets = 16'384;
};

Config config_for(Options options) {
  Config config;
  config.max_peers = 4;
  config.eager_bytes = options.eager;
  config.checksum = options.checksum;
  config.send_window = options.window;
  config.send_packets = options.packets;
  return config;
}

struct Pair {
  explicit Pair(Options options, std::size_t size = 20'000)
      : message(size, std::byte{7}),
        buffer(size),
        a(1, 1, config_for(options), 1472, options.bursts),
        b(2, 2, config_for(options), 1472, options.bursts) {
    for (std::size_t i = 0; i < size; ++i) message[i] = static_cast<std::byte>(i * 7 >> 4);
    peer = a.engine->connect(now, b.engine->address()).peer;
    for (int i = 0; i < 1000; ++i) turn();
    REQUIRE(a.engine->inspector().peer_state(peer) == PeerState::kConnected);
  }
  void turn() {
    a.engine->progress(now);
    b.engine->progress(now);
    now += step;
    for (const Datagram& packet : a.data->sent) note(packet);
    a.deliver_to(b);
    b.deliver_to(a);
  }

  void note(const Datagram& packet) {
    wire::PacketHeader header;
    REQUIRE(wire::decode(packet, header) == wire::Verdict::kAccepted);
    ++(header.type == wire::PacketType::kBulk ? bulk : other);
    if (header.has(wire::kFlagAckSoon)) ++asking;
    bytes += packet.size();
  }
  // Sends the message and waits until it has arrived.
  void deliver() {
    b.engine->matching().receive(now, kAnyPeer, kTag, 0, buffer, receive);
    a.engine->sending().send(now, peer, kTag, message, send);
    finish();
  }
  void deliver_sent() {
    b.engine->matching().receive(now, kAnyPeer, kTag, 0, buffer, receive);
    finish();
  }
  void finish() {
    for (int i = 0; i < 1000 && !send.done(); ++i) turn();
    CHECK(send.status() == Status::kOk);
    CHECK(receive.status() == Status::kOk);
    CHECK((buffer == message));
  }

  Instant now{std::chrono::seconds(1)};
  Duration step = std::chrono::microseconds(10);  // per turn: half a round trip
  std::size_t bulk = 0;                           // packets on the data channel of `a`
  std::size_t other = 0;                          // packets that are not bulk
  std::size_t asking = 0;                         // packets of both kinds that ask for their ACK
  std::size_t bytes = 0;                          // of both
  std::vector<std::byte> message;
  std::vector<std::byte> buffer;
  Request receive;
  Request send;
  ListEnd a;
  ListEnd b;
  PeerId peer;
};

}  // namespace

TEST_CASE("packets that the port refused of a message's last run leave when it has room again") {
  const std::size_t taken = GENERATE(0u, 1u, 6u);
  const bool bursts = GENERATE(false, true);
  Pair pair({.bursts = bursts, .eager = 64 * 1024});
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.data->room = taken;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  pair.turn();
  CHECK(pair.a.engine->next_deadline() <= pair.now);  // no sleep
  for (int i = 0; i < 10; ++i) pair.turn();
  pair.a.data->room = ListPort::kUnbounded;

  for (int i = 0; i < 20; ++i) pair.turn();

  CHECK(pair.send.status() == Status::kOk);
  CHECK(pair.receive.status() == Status::kOk);
  CHECK((pair.buffer == pair.message));
}

TEST_CASE("a message to an idle peer leaves within send(), whatever its length") {
  const std::size_t size = GENERATE(1u, 800u, 1400u, 5000u, 60'000u);
  Pair pair({.bursts = true, .eager = 64 * 1024}, size);
  Request second;
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  const std::size_t window = pair.a.engine->inspector().link(pair.peer)->window;
  const std::size_t left = pair.a.data->sent.size() + pair.a.command->sent.size();
  CHECK(left == std::min(window, (size + 1407) / 1408));
  pair.a.engine->sending().send(pair.now, pair.peer, kTag + 1, pair.message, second);
  CHECK(pair.a.data->sent.size() + pair.a.command->sent.size() == left);
  pair.turn();
  pair.turn();
  for (int i = 0; i < 100; ++i) pair.turn();
  CHECK((pair.buffer == pair.message));
}

TEST_CASE("a message that the port refuses within send() leaves with the next turn") {
  Pair pair({.bursts = true, .eager = 64 * 1024}, 8);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.command->room = 0;

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  CHECK(pair.a.command->sent.empty());
  pair.a.command->room = ListPort::kUnbounded;
  pair.a.engine->progress(pair.now);
  CHECK(pair.a.command->sent.size() == 1);
  for (int i = 0; i < 10; ++i) pair.turn();
  CHECK((pair.buffer == pair.message));
  CHECK(pair.a.engine->inspector().stats().retransmits == 0);
}

TEST_CASE(
    "a message with immediate data leaves in one call and on one channel, with its short end") {
  const std::size_t size = GENERATE(1500u, 2048u, 5000u);
  Pair pair({.bursts = true, .eager = 64 * 1024}, size);
  const std::span<const std::byte> segment = pair.message;
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.data->offered.clear();

  pair.a.engine->sending().submit(
      pair.now,
      {.peer = pair.peer, .tag = kTag, .segments = {&segment, 1}, .options = {.immediate = 42}},
      pair.send);

  CHECK(pair.a.data->offered == std::vector{(size + 8 + 1407) / 1408});
  CHECK(pair.a.command->sent.empty());
  for (int i = 0; i < 100; ++i) pair.turn();
  CHECK((pair.buffer == pair.message));
  CHECK(pair.receive.immediate() == 42);
}

TEST_CASE("a long message begins with short bursts if nothing is in flight") {
  Pair pair({.bursts = true, .eager = 64 * 1024}, 300'000);
  for (int i = 0; i < 20; ++i) pair.deliver();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window / 4 >= 44);
  for (int i = 0; i < 10; ++i) pair.turn();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->in_flight == 0);
  pair.a.data->offered.clear();

  pair.deliver();

  const std::vector<std::size_t>& offered = pair.a.data->offered;
  CHECK(offered.front() <= 24);
  CHECK(*std::max_element(offered.begin(), offered.end()) >= 40);
}

TEST_CASE("the last few packets of a message leave in the same turn as the others") {
  const auto [packets, left] = GENERATE(table<std::size_t, std::size_t>(
      {{176, 0}, {177, 0}, {186, 0}, {208, 0}, {209, 33}, {352, 176}}));
  Pair pair({.bursts = true, .eager = 512 * 1024}, packets * 1408);
  for (int i = 0; i < 40; ++i) pair.deliver();
  for (int i = 0; i < 10; ++i) pair.turn();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window >= packets);
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->in_flight == 0);

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  CHECK(pair.a.data->sent.size() == packets - left);
  pair.deliver_sent();
}

TEST_CASE("the last packets of a message leave in bursts of half the rest") {
  using Offered = std::vector<std::size_t>;
  const auto [packets, offered] = GENERATE(table<std::size_t, Offered>({
      {48, {24, 24}},
      {60, {24, 18, 18}},
      {92, {24, 24, 44}},
      {94, {24, 24, 23, 23}},
      {111, {24, 24, 32, 31}},
      {112, {24, 24, 44, 20}},
  }));
  Pair pair({.bursts = true, .eager = 512 * 1024}, packets * 1408);
  for (int i = 0; i < 40; ++i) pair.deliver();
  for (int i = 0; i < 10; ++i) pair.turn();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->in_flight == 0);
  pair.a.data->offered.clear();

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  CHECK(pair.a.data->offered == offered);
  pair.deliver_sent();
}

TEST_CASE("a burst that the window ends, not the message, takes all of the window") {
  Pair pair({.bursts = true, .eager = 512 * 1024, .window = 24}, 40 * 1408);
  for (int i = 0; i < 40; ++i) pair.deliver();
  for (int i = 0; i < 10; ++i) pair.turn();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window == 24);
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->in_flight == 0);
  pair.a.data->offered.clear();

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  CHECK(pair.a.data->offered == std::vector<std::size_t>{24});
  pair.deliver_sent();
}

TEST_CASE("a peer that answers at once is sent one burst, another one quarters of the window") {
  const bool at_once = GENERATE(true, false);
  Pair pair({.bursts = true, .eager = 64 * 1024, .window = 16}, 14'000);
  if (!at_once) pair.step = std::chrono::microseconds(100);
  for (int i = 0; i < 40; ++i) pair.deliver();
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window / 4 == 4);
  pair.a.data->offered.clear();

  pair.deliver();

  using Offered = std::vector<std::size_t>;
  CHECK(pair.a.data->offered == (at_once ? Offered{10} : Offered{4, 4, 2}));
}

TEST_CASE(
    "a sender that polls seldom sends full bursts, and waits for ACKs rather than send a short "
    "one") {
  const bool seldom = GENERATE(true, false);
  const bool several = GENERATE(true, false);
  // A burst leaves half a burst of the second window size, and two leave a few of the third.
  const std::uint32_t window = GENERATE(64, 66, 96);
  Request second, third;
  std::vector<std::byte> room(6'000'000);
  Pair pair({.bursts = true, .eager = 64 * 1024, .window = window}, room.size());
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag + 1, 0, room, third);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  if (several) pair.a.engine->sending().send(pair.now, pair.peer, kTag + 1, pair.message, second);
  while (pair.a.engine->inspector().link(pair.peer)->window < window) pair.turn();
  const auto look = [&] {
    pair.a.engine->progress(pair.now);
    for (const Datagram& packet : pair.a.data->sent) pair.note(packet);
    pair.a.deliver_to(pair.b);
    for (int i = 0; i < 4; ++i) {
      pair.now += std::chrono::microseconds(50);
      pair.b.engine->progress(pair.now);
      if (!seldom) pair.a.engine->progress(pair.now);
    }
    pair.b.deliver_to(pair.a);
    if (seldom) pair.now += std::chrono::milliseconds(1);
  };
  for (int i = 0; i < 30; ++i) look();
  pair.a.data->offered.clear();
  pair.asking = 0;

  for (int i = 0; i < 5; ++i) look();

  const std::vector<std::size_t>& offered = pair.a.data->offered;
  const bool full = seldom && several;
  const std::ptrdiff_t at_once = window == 64 ? 44 : window == 66 ? 66 : 88;
  CHECK(std::count(offered.begin(), offered.end(), at_once) == (full ? 5 : 0));
  CHECK((offered.size() == 5) == full);
  if (full) CHECK(pair.asking == 5);  // one ACK for each batch
  for (int i = 0; full && i < 3; ++i) {
    auto& acks = pair.a.command->arriving;
    acks.push_back(acks.front());
    look();
    CHECK(acks.size() == 1);  // both were taken, and one has come
  }
  for (int i = 0; i < 3000 && !pair.send.done(); ++i) pair.turn();
  CHECK((pair.buffer == pair.message));
}

TEST_CASE("the last few bytes of a message leave on the data channel behind the others") {
  Pair pair({.bursts = true, .eager = 64 * 1024}, 4 * 1408 + 100);  // a run of four, and a packet
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window / 4 == 4);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);

  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);

  CHECK(pair.a.data->sent.size() == 5);
  CHECK(pair.a.command->sent.empty());
  for (int i = 0; i < 100; ++i) pair.turn();
  CHECK((pair.buffer == pair.message));
}

TEST_CASE("a port is offered bursts of full length, and shorter ones only at the end") {
  Pair pair({.bursts = true}, 3'000'000);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  std::size_t full = 0, others = 0;
  for (int i = 0; i < 3000 && !pair.send.done(); ++i) {
    pair.turn();
    for (const std::size_t offered : pair.a.data->offered) {
      if (offered > 44) ++(offered % 44 == 0 ? full : others);
    }
    pair.a.data->offered.clear();
  }
  CHECK(pair.send.status() == Status::kOk);
  CHECK(full > 5);
  CHECK(others <= 2);  // at the end of the eager and of the granted bytes
}

TEST_CASE("a sender of much in each turn polls a quiet channel every 128 us, not every 32") {
  Pair pair({.bursts = true}, 12'000'000);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  const auto turns = [&](int count) {
    const std::size_t asked = pair.a.data->asked;
    for (int i = 0; i < count; ++i) pair.turn();
    return pair.a.data->asked - asked;
  };
  turns(1000);
  REQUIRE(pair.send.status() == Status::kOk);  // the window is open and the data channel quiet

  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  turns(4);
  CHECK(turns(39) == 3);
  CHECK_FALSE(pair.send.done());
}

TEST_CASE("of messages of a few packets a burst has whole ones, and packets of one length") {
  constexpr std::size_t kMessages = 60;
  const auto packets = GENERATE(std::size_t{3}, std::size_t{5}, std::size_t{7});
  Pair pair({.bursts = true, .eager = 64 * 1024}, (packets - 1) * 1408 + 50);
  pair.step = std::chrono::microseconds(2);
  std::vector<Request> sends(kMessages), receives(kMessages);
  const auto exchange = [&] {
    for (std::size_t i = 0; i < kMessages; ++i) {
      pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, receives[i]);
      pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, sends[i]);
    }
    for (int i = 0; i < 1000 && !sends.back().done(); ++i) pair.turn();
    for (std::size_t i = 0; i < kMessages; ++i) CHECK(receives[i].status() == Status::kOk);
  };
  for (int i = 0; i < 20; ++i) exchange();  // until the window is large
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window >= packets * kMessages);

  for (Request& request : sends) REQUIRE(request.done());
  for (std::size_t i = 0; i < kMessages; ++i) {
    pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, sends[i]);
  }
  std::vector<std::size_t> lengths;
  for (int i = 0; i < 100; ++i) {
    pair.a.engine->progress(pair.now);
    for (const Datagram& packet : pair.a.data->sent) lengths.push_back(packet.size());
    pair.a.deliver_to(pair.b);
    pair.b.engine->progress(pair.now += pair.step);
    pair.b.deliver_to(pair.a);
  }
  REQUIRE(lengths.size() >= packets * (kMessages - 4));
  const std::size_t usual = lengths[lengths.size() / 2];
  const auto unusual = std::count_if(lengths.begin(), lengths.end(),
                                     [&](std::size_t length) { return length != usual; });
  CHECK(unusual <= 2);  // of the last message, which none follows
}

TEST_CASE("where bursts are short no byte is sent twice to equalise lengths") {
  Pair pair({.bursts = true, .eager = 64 * 1024}, 16'384);
  REQUIRE(pair.a.engine->inspector().link(pair.peer)->window < 64);
  Request another;
  pair.bytes = 0;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, another);
  pair.deliver();
  for (int i = 0; i < 100; ++i) pair.turn();
  CHECK(pair.bytes == 2 * (16'384 + 12 * 64));
}

TEST_CASE("granted bytes leave as bulk packets behind two that piggyback a due ACK") {
  Pair pair({.bursts = true}, 300'000);
  const Stats before = pair.a.engine->inspector().stats();
  const std::size_t others = pair.other;

  pair.deliver();

  // The GRANT is to be acked: the next two packets piggyback that, and so are not bulk.
  const Stats after = pair.a.engine->inspector().stats();
  CHECK(after.acks_piggybacked > before.acks_piggybacked);
  CHECK(after.acks_sent == before.acks_sent);
  CHECK(after.retransmits == 0);
  CHECK(pair.other - others == (kEager + 1407) / 1408 + 2);
  CHECK(pair.bulk > 100);
  CHECK(pair.b.engine->inspector().stats().dropped_packets == 0);
}

// The sender waits, and sends nothing that would make the peer answer.
TEST_CASE("a long message is acknowledged when it is whole, not after the ACK delay") {
  const bool bursts = GENERATE(false, true);
  const bool checksum = GENERATE(false, true);
  const std::size_t size = GENERATE(2049u, 3000u, 4096u, 20u * 1408u, 300'000u);
  CAPTURE(bursts, checksum, size);
  Pair pair({.bursts = bursts, .checksum = checksum}, size);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  for (int i = 0; i < 1000 && !pair.receive.done(); ++i) pair.turn();
  REQUIRE(pair.receive.done());
  REQUIRE_FALSE(pair.send.done());

  for (int i = 0; i < 3; ++i) pair.turn();  // the first is for the program's answer

  CHECK(pair.send.done());
}

TEST_CASE("a send of the sender's own copy awaits no ACK and asks for none") {
  const bool own_copy = GENERATE(false, true);
  SendOptions options;
  options.is_own_copy = own_copy;
  Pair pair({.bursts = true, .eager = 64 * 1024}, 12'000);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  const std::span<const std::byte> bytes = pair.message;
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&bytes, 1}, .options = options},
      pair.send);

  for (int i = 0; i < 10; ++i) pair.turn();

  CHECK(pair.receive.done());
  CHECK(pair.send.done() == !own_copy);
}

TEST_CASE("messages that are answered need not ask, as the answers bring the ACKs") {
  SendOptions options;
  options.is_own_copy = true;
  Pair pair({.bursts = true, .eager = 64 * 1024}, 10 * 1408);
  const PeerId back = *pair.b.engine->accept();
  const std::span<const std::byte> bytes = pair.message;
  std::byte word{};
  for (int i = 0; i < 60; ++i) {
    Request sent;
    Request received;
    Request heard;
    pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, received);
    pair.a.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, {&word, 1}, heard);
    pair.a.engine->sending().submit(
        pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&bytes, 1}, .options = options},
        sent);
    for (int turn = 0; turn < 100 && !received.done(); ++turn) pair.turn();
    pair.b.engine->sending().send(pair.now, back, kTag, {&word, 1}, pair.send);
    for (int turn = 0; turn < 100 && !(heard.done() && sent.done()); ++turn) pair.turn();
    REQUIRE(sent.done());
  }
  CHECK(pair.asking <= 2);  // while the first windows were small
}

TEST_CASE("a short message whose send completes on delivery asks for its ACK") {
  SendOptions options;
  options.until_delivered = true;
  Pair pair({.bursts = true}, 100);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  const std::span<const std::byte> bytes = pair.message;
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&bytes, 1}, .options = options},
      pair.send);

  for (int i = 0; i < 5; ++i) pair.turn();

  CHECK(pair.send.done());
}

TEST_CASE("of messages in a row only the last asks for its ACK") {
  Pair pair({.bursts = true, .eager = 64 * 1024}, 2000);
  Request first;
  Request second;
  Request third;
  pair.a.data->room = 0;
  for (Request* send : {&first, &second, &third}) {
    pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, *send);
  }
  pair.a.data->room = ListPort::kUnbounded;
  pair.step = std::chrono::microseconds(1);
  for (int i = 0; i < 10; ++i) pair.turn();

  CHECK(pair.asking <= 2);  // the first was cut before the others were sent
  for (const Request* send : {&first, &second, &third}) CHECK(send->done());
}

TEST_CASE("a last packet that the port refused asks for its ACK when it leaves") {
  const std::size_t taken = GENERATE(0u, 5u);
  Pair pair({.bursts = true, .eager = 64 * 1024}, 14'000);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.data->room = taken;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  for (int i = 0; i < 3; ++i) pair.turn();
  CHECK(pair.asking == 0);
  pair.a.data->room = ListPort::kUnbounded;

  for (int i = 0; i < 10; ++i) pair.turn();

  CHECK(pair.asking == 1);
}

TEST_CASE("a retransmission asks for its ACK, as all packets behind it may wait for that") {
  Pair pair({.eager = 64 * 1024}, 5 * 1408);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  pair.a.engine->progress(pair.now);
  REQUIRE(pair.a.data->sent.size() == 5);
  pair.a.data->sent.erase(pair.a.data->sent.begin() + 2);
  for (int i = 0; i < 1000 && !pair.receive.done(); ++i) pair.turn();
  REQUIRE(pair.receive.done());
  REQUIRE_FALSE(pair.send.done());

  for (int i = 0; i < 3; ++i) pair.turn();

  CHECK(pair.send.done());
}

TEST_CASE(
    "a window too small for periodic ACKs is filled again without waiting for the ACK delay") {
  const bool bursts = GENERATE(false, true);
  const std::size_t window = GENERATE(16u, 17u, 33u, 100u);
  CAPTURE(bursts, window);
  Pair pair({.bursts = bursts, .eager = 64 * 1024, .window = window}, 600 * 1408);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  const Instant start = pair.now;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  for (int i = 0; i < 10'000 && !pair.send.done(); ++i) pair.turn();

  REQUIRE(pair.send.done());
  // A round trip is two turns; a few may wait for the ACK delay (50 us).
  const auto windows = static_cast<std::int64_t>(600 / window + 1);
  CHECK(pair.now - start <=
        windows * std::chrono::microseconds(4) + std::chrono::microseconds(110));
}

TEST_CASE("a sender with a pool too small for periodic ACKs does not wait for the ACK delay") {
  const bool bursts = GENERATE(false, true);
  const std::size_t packets = GENERATE(64u, 65u, 100u, 200u);
  CAPTURE(bursts, packets);
  Pair pair({.bursts = bursts, .eager = 64 * 1024, .packets = packets}, 600 * 1408);
  pair.step = std::chrono::microseconds(1);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  const Instant start = pair.now;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  for (int i = 0; i < 10'000 && !pair.send.done(); ++i) pair.turn();

  REQUIRE(pair.send.done());
  CHECK(pair.now - start <= std::chrono::microseconds(200));
}

TEST_CASE("nothing leaves as bulk with checksums, or where bursts are no cheaper") {
  const bool checksum = GENERATE(false, true);
  Pair pair({.bursts = checksum, .checksum = checksum}, 300'000);
  pair.deliver();
  CHECK(pair.bulk == 0);
}

TEST_CASE("bulk packets that the port refused leave when it has room again, each once") {
  Pair pair({.bursts = true}, 300'000);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  for (int i = 0; i < 1000 && !pair.send.done(); ++i) {
    pair.a.data->room = 7;
    pair.turn();
  }
  CHECK(pair.send.status() == Status::kOk);
  CHECK((pair.buffer == pair.message));
  CHECK(pair.bulk > 100);
  CHECK(pair.bulk + pair.other < 230);
  CHECK(pair.a.engine->inspector().stats().retransmits == 0);
}

TEST_CASE("of bulk packets only those that are lost are retransmitted") {
  Pair pair({.bursts = true}, 300'000);
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, pair.message, pair.send);
  std::size_t lost = 0;
  for (int i = 0; i < 3000 && !pair.send.done(); ++i) {
    pair.turn();
    auto& arriving = pair.b.data->arriving;
    if (lost < 5 && arriving.size() > 9 && arriving[4][0] == std::byte{0x15}) {
      arriving.erase(arriving.begin() + 4);
      ++lost;
    }
  }
  CHECK(lost == 5);
  CHECK(pair.send.status() == Status::kOk);
  CHECK((pair.buffer == pair.message));
  CHECK(pair.a.engine->inspector().stats().retransmits == 5);
}

}  // namespace pullman
