// What a turn of the engine leaves for the next one after a message has arrived: the ACK that came
// with it, and the ACK that is due for it.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "list_end.h"
#include "wire/header.h"

namespace pullman {
namespace {

using std::chrono::microseconds;

constexpr Tag kTag = 5;
constexpr std::size_t kAckPackets = 8;

Config config_of(std::size_t window = 4096) {
  Config config;
  config.send_window = window;
  config.max_peers = 4;
  config.ack_delay = microseconds(50);
  config.ack_packets = kAckPackets;
  return config;
}

// Two connected engines; `b` answers messages of `a`.
struct Pair {
  explicit Pair(std::size_t window = 4096)
      : a(1, 1, config_of(window)), b(2, 2, config_of(window)) {
    peer = a.engine->connect(now, b.engine->address()).peer;
    for (int i = 0; i < 1000; ++i) {
      a.engine->progress(now);
      b.engine->progress(now);
      a.deliver_to(b);
      b.deliver_to(a);
      now += microseconds(10);
    }
    REQUIRE(a.engine->inspector().peer_state(peer) == PeerState::kConnected);
    back = *b.engine->accept();
    for (auto& request : received) {
      b.engine->matching().receive(now, kAnyPeer, kTag, 0, {&byte, 1}, request);
    }
    ask();
    b.engine->progress(now);
    answer();
    now += microseconds(1000);
  }
  // `a` sends a message with the ACK of the last answer; it arrives with the next turn of `b`.
  void ask() {
    Request request;
    REQUIRE(a.engine->sending().send(now, peer, kTag, {&byte, 1}, request) == Status::kOk);
    a.deliver_to(b);
  }
  void answer() {
    Request request;
    REQUIRE(b.engine->sending().send(now, back, kTag, {&byte, 1}, request) == Status::kOk);
    REQUIRE(b.sent() == 1);
    b.deliver_to(a);
    for (int i = 0; i < 2; ++i) a.engine->progress(now);
    REQUIRE(a.sent() == 0);
  }
  Instant now{std::chrono::seconds(1)};
  std::byte byte{};
  std::array<Request, 3> received;
  ListEnd a, b;
  PeerId peer;
  PeerId back;
};

}  // namespace

TEST_CASE("a turn leaves an ACK pending for a message that asks for one, and for no other") {
  const bool asked = GENERATE(false, true);
  Pair pair;
  SendOptions options;
  options.until_delivered = asked;
  Request request;
  const std::span<const std::byte> segment(&pair.byte, 1);
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&segment, 1}, .options = options},
      request);
  pair.a.deliver_to(pair.b);

  REQUIRE(pair.b.engine->progress(pair.now) == 1);
  REQUIRE(pair.received[1].done());
  CHECK(pair.b.engine->has_pending_tx() == asked);

  pair.b.engine->progress(pair.now);
  CHECK_FALSE(pair.b.engine->has_pending_tx());
  pair.b.deliver_to(pair.a);
  pair.a.engine->progress(pair.now);
  CHECK(request.done());
}

TEST_CASE("a turn leaves an ACK pending for a message in the first packet that asks, wire.md 5.9") {
  const bool both_call = GENERATE(false, true);  // then one HELLO is repeated (wire.md 5.6)
  const std::uint64_t seed = GENERATE(1, 2);
  Instant now{std::chrono::seconds(1)};
  ListEnd a{1, seed, config_of()};
  ListEnd b{2, 3 - seed, config_of()};
  std::byte byte{};
  Request sent, received;
  b.engine->matching().receive(now, kAnyPeer, kTag, 0, {&byte, 1}, received);
  const PeerId peer = a.engine->connect(now, b.engine->address()).peer;
  if (both_call) b.engine->connect(now, a.engine->address());
  SendOptions options;
  options.until_delivered = true;
  const std::span<const std::byte> segment(&byte, 1);
  a.engine->sending().submit(
      now, {.peer = peer, .tag = kTag, .segments = {&segment, 1}, .options = options}, sent);
  for (int i = 0; i < 100 && !received.done(); ++i) {
    a.engine->progress(now);
    b.engine->progress(now);
    a.deliver_to(b);
    b.deliver_to(a);
  }
  REQUIRE(received.done());
  a.engine->progress(now);
  CHECK(b.engine->has_pending_tx() != sent.done());

  b.engine->progress(now);
  b.deliver_to(a);
  a.engine->progress(now);
  CHECK(sent.done());
}

namespace {

// `a` sends the message, all of which arrives in one turn of `b`: something arrived just before, so
// no channel is quiet.
void ask(Pair& pair, std::span<const std::byte> bytes, Request& request) {
  pair.b.data->arriving.push_back(Datagram(1));
  while (!pair.b.data->arriving.empty()) {
    pair.now += microseconds(10);
    pair.b.engine->progress(pair.now);
  }
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, bytes, request);
  pair.a.deliver_to(pair.b);
}

// `b` sends a message that is done when acknowledged; `a` has received it, but the ACK is
// lost. The next packet of `a` repeats it.
void send_until_delivered(Pair& pair, Request& request) {
  SendOptions options;
  options.until_delivered = true;
  const std::span<const std::byte> segment(&pair.byte, 1);
  pair.b.engine->sending().submit(
      pair.now, {.peer = pair.back, .tag = kTag, .segments = {&segment, 1}, .options = options},
      request);
  pair.b.engine->progress(pair.now);
  REQUIRE(pair.b.sent() == 1);
  pair.b.deliver_to(pair.a);
  pair.a.engine->progress(pair.now);
  pair.a.command->sent.clear();
  REQUIRE(pair.a.sent() == 0);
}

}  // namespace

TEST_CASE(
    "the ACK that comes with a message is processed after the program's turn, whatever its "
    "length") {
  const std::size_t size = GENERATE(1000, 3000, 20'000);
  std::vector<std::byte> bytes(size);
  Request asking, answer;
  Pair pair;
  send_until_delivered(pair, answer);
  ask(pair, bytes, asking);

  pair.b.engine->progress(pair.now);

  REQUIRE(pair.received[1].done());
  CHECK_FALSE(answer.done());
  pair.b.engine->progress(pair.now);
  CHECK(answer.done());
}

TEST_CASE("the ACK that comes with a part of a message is processed at once") {
  std::vector<std::byte> bytes(20'000);
  Request asking, answer;
  Pair pair;
  send_until_delivered(pair, answer);
  ask(pair, bytes, asking);
  REQUIRE(pair.b.data->arriving.size() > 2);
  pair.b.data->arriving.pop_back();

  pair.b.engine->progress(pair.now);

  REQUIRE_FALSE(pair.received[1].done());
  CHECK(answer.done());
}

TEST_CASE("small messages that wait leave before the NIC is polled, long ones do not") {
  const std::size_t size = GENERATE(1, 20'000);
  Pair pair;
  std::vector<std::byte> bytes(size);
  std::array<Request, 3> requests;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, requests[0]);
  REQUIRE(pair.a.sent() == 1);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, bytes, requests[1]);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, bytes, requests[2]);
  REQUIRE(pair.a.sent() == 1);

  pair.a.engine->progress(pair.now);

  CHECK(pair.a.sent() > 1);
  const std::size_t before = pair.a.command->sent_when_asked + pair.a.data->sent_when_asked;
  CHECK(before == (size == 1 ? 2 : 1));
  CHECK((size != 1 || pair.a.sent() == 2));  // both in one packet
  pair.a.engine->abort();
}

TEST_CASE("an ACK waits for the answer although the last turn brought a message, too") {
  Pair pair;
  pair.b.engine->progress(pair.now);  // brings none
  pair.ask();
  REQUIRE(pair.b.engine->progress(pair.now) == 1);
  SendOptions options;
  options.until_delivered = true;
  Request request;
  const std::span<const std::byte> segment(&pair.byte, 1);
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&segment, 1}, .options = options},
      request);
  pair.a.engine->progress(pair.now);
  pair.a.deliver_to(pair.b);

  REQUIRE(pair.b.engine->progress(pair.now) == 1);
  CHECK(pair.b.sent() == 0);
  CHECK(pair.b.engine->has_pending_tx());
  pair.answer();
  CHECK(request.done());
  pair.b.engine->progress(pair.now);
  CHECK(pair.b.sent() == 0);
}

TEST_CASE("a message sent after disconnect() is refused, though a waiting packet has room for it") {
  const bool all = GENERATE(false, true);
  Pair pair;
  std::array<Request, 3> requests;
  const auto send = [&](Request& request) {
    return pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, request);
  };
  REQUIRE(send(requests[0]) == Status::kOk);
  REQUIRE(send(requests[1]) == Status::kOk);
  if (all) {
    pair.a.engine->begin_close(pair.now);
  } else {
    pair.a.engine->disconnect(pair.now, pair.peer);
  }
  CHECK(send(requests[2]) == (all ? Status::kClosed : Status::kPeerClosed));
}

TEST_CASE("a program may answer a message before its ACK leaves") {
  Pair pair;
  pair.ask();
  const std::uint32_t in_flight = pair.b.engine->inspector().link(pair.back)->in_flight;
  REQUIRE(in_flight == 1);

  CHECK(pair.b.engine->progress(pair.now) == 1);
  CHECK(pair.received[1].done());
  CHECK(pair.b.engine->inspector().link(pair.back)->in_flight == in_flight);
  CHECK(pair.b.engine->next_deadline() <= pair.now);  // no sleep

  const Stats before = pair.b.engine->inspector().stats();
  SECTION("an answer piggybacks it, and none leaves alone") {
    pair.answer();
    pair.b.engine->progress(pair.now + microseconds(60));
    CHECK(pair.b.sent() == 0);
    CHECK(pair.b.engine->inspector().stats().acks_piggybacked == before.acks_piggybacked + 1);
    CHECK(pair.b.engine->inspector().stats().acks_sent == before.acks_sent);
  }
  SECTION("without an answer it leaves in time") {
    pair.b.engine->progress(pair.now);
    CHECK(pair.b.engine->inspector().link(pair.back)->in_flight == 0);
    CHECK(pair.b.engine->next_deadline() <= pair.now + microseconds(50));
    pair.b.engine->progress(pair.now + microseconds(60));
    CHECK(pair.b.sent() == 1);
    CHECK(pair.b.engine->inspector().stats().acks_sent == before.acks_sent + 1);
  }
}

TEST_CASE(
    "a gap that a single message opens is reported in the turn in which that arrives, wire.md "
    "6.2") {
  Pair pair;
  Request lost, next;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, lost);
  pair.a.engine->progress(pair.now);
  REQUIRE(pair.a.sent() == 1);
  pair.a.command->sent.clear();
  pair.a.data->sent.clear();
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, next);
  pair.a.engine->progress(pair.now);
  pair.a.deliver_to(pair.b);
  CHECK(pair.b.engine->progress(pair.now) == 1);
  CHECK(pair.b.sent() == 1);
}

TEST_CASE(
    "an ACK that is due for its number of packets waits one turn for the answer, wire.md 6.2") {
  constexpr Tag kLong = 6;
  constexpr std::size_t kPackets = kAckPackets + 4;
  std::vector<std::byte> bytes(kPackets * 1400), room(bytes.size());
  Request send, receive;
  Pair pair;
  pair.b.engine->matching().receive(pair.now, kAnyPeer, kLong, 0, room, receive);
  pair.a.engine->sending().send(pair.now, pair.peer, kLong, bytes, send);
  pair.a.engine->progress(pair.now);
  std::vector<Datagram>& packets = pair.a.data->sent;
  REQUIRE(packets.size() >= kPackets);
  const Stats before = pair.b.engine->inspector().stats();
  const auto alone = [&] {
    return pair.b.engine->inspector().stats().acks_sent - before.acks_sent;
  };
  const auto take = [&] {  // all but the first in one turn
    pair.a.deliver_to(pair.b);
    for (std::size_t taken = 0; taken < 2; pair.now += microseconds(1)) {
      if (pair.b.engine->progress(pair.now) != 0) ++taken;
    }
  };

  SECTION("after the last packet of a message") {
    take();
    REQUIRE(receive.done());
    CHECK(pair.b.sent() == 0);
    CHECK(pair.b.engine->next_deadline() <= pair.now);  // no sleep
    SECTION("the answer piggybacks it, and none leaves alone") {
      pair.answer();
      pair.b.engine->progress(pair.now);
      CHECK(pair.b.sent() == 0);
      CHECK(alone() == 0);
      CHECK(send.status() == Status::kOk);
    }
    SECTION("without an answer it leaves in the next turn") {
      pair.b.engine->progress(pair.now);
      CHECK(pair.b.sent() == 1);
      CHECK(alone() == 1);
    }
    SECTION("another message does not delay it further") {
      pair.ask();
      pair.a.engine->progress(pair.now);
      pair.a.deliver_to(pair.b);
      pair.b.engine->progress(pair.now);
      REQUIRE(pair.received[1].done());
      CHECK(alone() == 1);
    }
  }
  SECTION("in the middle of a message it leaves at once") {
    packets.pop_back();
    take();
    REQUIRE_FALSE(receive.done());
    CHECK(alone() == 1);
  }
}

// On the command channel it would overtake the packets before it, and its ACK would tell nothing of
// them.
TEST_CASE("the end of a message of several packets leaves on the data channel, even alone") {
  constexpr std::size_t kWindow = 16;
  Pair pair(kWindow);
  const std::vector<std::byte> full(1400), message(1425);
  std::array<Request, kWindow> sends;
  for (std::size_t i = 0; i + 1 < kWindow; ++i) {
    pair.a.engine->sending().send(pair.now, pair.peer, kTag, full, sends[i]);
    pair.a.engine->progress(pair.now);
  }
  REQUIRE(pair.a.engine->sending().send(pair.now, pair.peer, kTag, message, sends.back()) ==
          Status::kOk);
  pair.a.engine->progress(pair.now);
  REQUIRE(pair.a.data->sent.size() == kWindow);  // with its first packet
  pair.a.deliver_to(pair.b);
  for (int i = 0; i < 3; ++i) pair.b.engine->progress(pair.now += microseconds(100));
  pair.b.deliver_to(pair.a);
  for (int i = 0; i < 2; ++i) pair.a.engine->progress(pair.now);

  CHECK(pair.a.command->sent.empty());
  CHECK(pair.a.data->sent.size() == 1);
}

// A sender learns from duplicates that it declared a loss too early (wire.md 7.1).
TEST_CASE("a duplicate of a padded packet counts as late") {
  Pair pair;
  const std::vector<std::byte> nearly_full(1410), message(1425);
  std::array<Request, 3> sends;
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, sends[0]);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, nearly_full, sends[1]);
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, message, sends[2]);
  pair.a.engine->progress(pair.now);
  auto& sent = pair.a.data->sent;
  REQUIRE(sent.size() == 3);
  REQUIRE(sent[0].size() == 1472);
  Datagram again = sent[0];
  wire::PacketHeader header;
  REQUIRE(wire::decode(again, header) == wire::Verdict::kAccepted);
  header.number += 3;
  header.floor_distance += 3;
  wire::encode(header, again.data());
  sent.push_back(again);
  const auto late = [&] {
    pair.b.engine->progress(pair.now);
    pair.b.engine->progress(pair.now += microseconds(100));
    REQUIRE(pair.b.command->sent.size() == 1);
    REQUIRE(wire::decode(pair.b.command->sent.back(), header) == wire::Verdict::kAccepted);
    return header.late;
  };

  pair.a.deliver_to(pair.b);

  CHECK(late() == 1);
  CHECK(pair.b.engine->inspector().stats().dropped_packets == 0);
}

// That many turns of 1 us, of which every fourth brings a message.
void turn_for(Pair& pair, int turns) {
  for (int i = 0; i < turns; ++i, pair.now += microseconds(1)) {
    if (i % 4 == 0) {
      Request request;
      pair.a.engine->sending().send(pair.now, pair.peer, kTag, {&pair.byte, 1}, request);
    }
    pair.a.engine->progress(pair.now);
    pair.a.deliver_to(pair.b);
    pair.b.engine->progress(pair.now);
    pair.b.deliver_to(pair.a);
  }
}

TEST_CASE("a quiet channel beside a busy one is polled once in an eighth of its silence") {
  Pair pair;
  pair.b.data->arriving.emplace_back(40);
  turn_for(pair, 40);
  turn_for(pair, 32);  // the data channel is quiet after 64
  const auto asked_in = [&](int turns) {
    const std::size_t before = pair.b.data->asked;
    turn_for(pair, turns);
    return pair.b.data->asked - before;
  };

  SECTION("often at first, then seldom, but never less than that") {
    const std::size_t early = asked_in(64);
    CHECK(early >= 8);
    CHECK(early <= 16);
    turn_for(pair, 1000);
    CHECK(asked_in(320) >= 8);
    CHECK(asked_in(320) <= 10);
  }
  SECTION("in each turn again when something arrives") {
    turn_for(pair, 1000);
    pair.b.data->arriving.emplace_back(40);
    turn_for(pair, 40);
    CHECK(pair.b.data->arriving.empty());
    CHECK(asked_in(20) == 20);
  }
}

}  // namespace pullman
