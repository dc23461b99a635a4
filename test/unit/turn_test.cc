// What a turn of the engine leaves for the next when a message has come: what its ACK says, and to
// owe one.
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

// Two engines that are connected; `b` answers what `a` sends.
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
  // A message of `a` is before `b`, with an ACK of the answer to the one before.
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

TEST_CASE("a turn owes the ACK that a message asks for, and none for others") {
  const bool asked = GENERATE(false, true);
  Pair pair;
  SendOptions options;
  options.until_delivered = asked;
  Request request;
  const std::span<const std::byte> piece(&pair.byte, 1);
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&piece, 1}, .options = options},
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

TEST_CASE("a turn owes the ACK of a message that came with the first packet, wire.md 5.9") {
  const bool both_call = GENERATE(false, true);  // then one of them says it again (wire.md 5.6)
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
  const std::span<const std::byte> piece(&byte, 1);
  a.engine->sending().submit(
      now, {.peer = peer, .tag = kTag, .segments = {&piece, 1}, .options = options}, sent);
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

// The message is before `b`, and comes together: something came just before, so no channel is
// quiet.
void ask(Pair& pair, std::span<const std::byte> bytes, Request& request) {
  pair.b.data->arriving.push_back(Datagram(1));
  while (!pair.b.data->arriving.empty()) {
    pair.now += microseconds(10);
    pair.b.engine->progress(pair.now);
  }
  pair.a.engine->sending().send(pair.now, pair.peer, kTag, bytes, request);
  pair.a.deliver_to(pair.b);
}

// `b` has a message under way that is done when it is acknowledged; `a` has it, and its ACK is
// lost: the next packet says the same.
void send_until_delivered(Pair& pair, Request& request) {
  SendOptions options;
  options.until_delivered = true;
  const std::span<const std::byte> piece(&pair.byte, 1);
  pair.b.engine->sending().submit(
      pair.now, {.peer = pair.back, .tag = kTag, .segments = {&piece, 1}, .options = options},
      request);
  pair.b.engine->progress(pair.now);
  REQUIRE(pair.b.sent() == 1);
  pair.b.deliver_to(pair.a);
  pair.a.engine->progress(pair.now);
  pair.a.command->sent.clear();
  REQUIRE(pair.a.sent() == 0);
}

}  // namespace

TEST_CASE("the ACK that comes with a message waits for the program's turn, however long it is") {
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

TEST_CASE("the ACK that comes with a part of a message waits for nobody") {
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

TEST_CASE("small messages that wait leave before the NIC is asked for anything, long ones do not") {
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

TEST_CASE("an ACK waits for the answer although the turn before has brought a message, too") {
  Pair pair;
  pair.b.engine->progress(pair.now);  // brings none
  pair.ask();
  REQUIRE(pair.b.engine->progress(pair.now) == 1);
  SendOptions options;
  options.until_delivered = true;
  Request request;
  const std::span<const std::byte> piece(&pair.byte, 1);
  pair.a.engine->sending().submit(
      pair.now, {.peer = pair.peer, .tag = kTag, .segments = {&piece, 1}, .options = options},
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

TEST_CASE(
    "what is sent behind a disconnect() is refused, though it would fit a packet that waits") {
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

TEST_CASE("a program may answer a message before an ACK is owed for it") {
  Pair pair;
  pair.ask();
  const std::uint32_t in_flight = pair.b.engine->inspector().link(pair.back)->in_flight;
  REQUIRE(in_flight == 1);

  CHECK(pair.b.engine->progress(pair.now) == 1);
  CHECK(pair.received[1].done());
  CHECK(pair.b.engine->inspector().link(pair.back)->in_flight == in_flight);
  CHECK(pair.b.engine->next_deadline() <= pair.now);  // nobody sleeps on it

  const Stats before = pair.b.engine->inspector().stats();
  SECTION("an answer takes it along, and none leaves alone") {
    pair.answer();
    pair.b.engine->progress(pair.now + microseconds(60));
    CHECK(pair.b.sent() == 0);
    CHECK(pair.b.engine->inspector().stats().acks_piggybacked == before.acks_piggybacked + 1);
    CHECK(pair.b.engine->inspector().stats().acks_sent == before.acks_sent);
  }
  SECTION("if there is no answer it leaves in time") {
    pair.b.engine->progress(pair.now);
    CHECK(pair.b.engine->inspector().link(pair.back)->in_flight == 0);
    CHECK(pair.b.engine->next_deadline() <= pair.now + microseconds(50));
    pair.b.engine->progress(pair.now + microseconds(60));
    CHECK(pair.b.sent() == 1);
    CHECK(pair.b.engine->inspector().stats().acks_sent == before.acks_sent + 1);
  }
}

TEST_CASE("but a gap that a lone message opens is told in the turn it comes in, wire.md 6.2") {
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

  SECTION("with what it is told of in this turn, and with nothing else") {
    take();
    REQUIRE(receive.done());
    CHECK(pair.b.sent() == 0);
    CHECK(pair.b.engine->next_deadline() <= pair.now);  // nobody sleeps on it
    SECTION("the answer takes it along, and none leaves alone") {
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
    SECTION("which another message does not put off") {
      pair.ask();
      pair.a.engine->progress(pair.now);
      pair.a.deliver_to(pair.b);
      pair.b.engine->progress(pair.now);
      REQUIRE(pair.received[1].done());
      CHECK(alone() == 1);
    }
  }
  SECTION("but it leaves at once in the middle of a message") {
    packets.pop_back();
    take();
    REQUIRE_FALSE(receive.done());
    CHECK(alone() == 1);
  }
}

// On the command channel it would overtake what is before it, and its ACK would not say what became
// of that.
TEST_CASE("the end of a message of several packets leaves on the data channel, if alone, too") {
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
  REQUIRE(pair.a.data->sent.size() == kWindow);  // its first packet, too
  pair.a.deliver_to(pair.b);
  for (int i = 0; i < 3; ++i) pair.b.engine->progress(pair.now += microseconds(100));
  pair.b.deliver_to(pair.a);
  for (int i = 0; i < 2; ++i) pair.a.engine->progress(pair.now);

  CHECK(pair.a.command->sent.empty());
  CHECK(pair.a.data->sent.size() == 1);
}

// Who takes a packet for lost too early learns it by what comes twice (wire.md 7.1).
TEST_CASE("a packet that comes twice is late, though it is filled up with what has no meaning") {
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

// Turns of 1 us for so long, of which every fourth brings a message.
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

TEST_CASE("a quiet channel is asked beside a busy one once in an eighth of its silence") {
  Pair pair;
  pair.b.data->arriving.emplace_back(40);
  turn_for(pair, 40);
  turn_for(pair, 32);  // the data channel falls silent after 64
  const auto asked_in = [&](int turns) {
    const std::size_t before = pair.b.data->asked;
    turn_for(pair, turns);
    return pair.b.data->asked - before;
  };

  SECTION("often at first, then seldom, and never less than that") {
    const std::size_t early = asked_in(64);
    CHECK(early >= 8);
    CHECK(early <= 16);
    turn_for(pair, 1000);
    CHECK(asked_in(320) >= 8);
    CHECK(asked_in(320) <= 10);
  }
  SECTION("when something comes, in each turn again") {
    turn_for(pair, 1000);
    pair.b.data->arriving.emplace_back(40);
    turn_for(pair, 40);
    CHECK(pair.b.data->arriving.empty());
    CHECK(asked_in(20) == 20);
  }
}

}  // namespace pullman
