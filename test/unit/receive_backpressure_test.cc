// Which packets of a batch wait for the next turn, so that the program can post receives before the
// messages become unexpected.
#include "engine/receive_backpressure.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "list_end.h"

namespace pullman {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Tag kTag = 5;
constexpr std::size_t kBytes = 300;
constexpr std::size_t kInPacket = 4;  // messages
constexpr std::size_t kPackets = 12;
constexpr std::size_t kMessages = 1 + kInPacket * kPackets;  // the first leaves alone
constexpr std::size_t kPosted = 25;                          // enough to pause for
constexpr std::size_t kTaken = 7;  // packets until a message was unexpected

Config config() {
  Config config;
  config.max_peers = 4;
  config.tiny_bytes = 64;  // all arrive at one port
  return config;
}

// `a` sends to `b`, which has posted fewer receives than messages arrive at once.
struct Pair {
  Pair() : a(1, 1, config()), b(2, 2, config()) {
    peer = a.engine->connect(now, b.engine->address()).peer;
    for (int i = 0; i < 1000; ++i) {
      turn();
      now += microseconds(10);
    }
    REQUIRE(a.engine->inspector().peer_state(peer) == PeerState::kConnected);
    back = *b.engine->accept();
  }
  void turn() {
    a.engine->progress(now);
    b.engine->progress(now);
    a.deliver_to(b);
    b.deliver_to(a);
  }
  void post(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      b.engine->matching().receive(now, kAnyPeer, kTag, 0, buffer, received.emplace_back());
    }
  }
  // The first message is taken, so `b` expects more; all others arrive before its next turn.
  void send() {
    send(1);
    REQUIRE(take() == 1);
    send(kMessages - 1);
  }
  void send(std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      Request request;
      REQUIRE(a.engine->sending().send(now, peer, kTag, bytes, request) == Status::kOk);
    }
    a.engine->progress(now);
    a.deliver_to(b);
  }
  std::size_t done() const {
    return static_cast<std::size_t>(std::count_if(
        received.begin(), received.end(), [](const Request& request) { return request.done(); }));
  }
  // Delivers the ACKs to `a`.
  void answer() {
    for (int i = 0; i < 100; ++i) {
      turn();
      now += microseconds(10);
    }
  }
  std::uint64_t unexpected() const { return b.engine->inspector().stats().unexpected_messages; }
  // Returns how many packets a turn of `b` takes.
  std::size_t take() { return b.engine->progress(now); }

  Instant now{std::chrono::seconds(1)};
  std::vector<std::byte> bytes = std::vector<std::byte>(kBytes), buffer = bytes;
  std::deque<Request> received;
  ListEnd a, b;
  PeerId peer;
  PeerId back;
};

}  // namespace

TEST_CASE(
    "packets without a receive wait until a program that was told of many messages has posted") {
  Pair pair;
  pair.post(kPosted);
  pair.send();

  CHECK(pair.take() == kTaken);
  CHECK(pair.done() == kPosted);
  CHECK(pair.unexpected() == kInPacket);

  pair.post(kMessages - kPosted);
  CHECK(pair.take() == kPackets - kTaken);
  CHECK(pair.done() == kMessages);
  CHECK(pair.unexpected() == kInPacket);
}

// Open MPI reads until nothing is left, and then its program posts: that read takes no packets.
TEST_CASE("a turn that leaves packets is due again at once, and leaves no ACK pending") {
  Pair pair;
  pair.post(kPosted);
  pair.send();
  pair.take();
  CHECK(pair.b.engine->next_deadline() <= pair.now);

  pair.post(kInPacket + 3 * kInPacket);
  REQUIRE(pair.take() == 4);  // one is left, and the ACK that waited has left
  CHECK_FALSE(pair.b.engine->has_pending_tx());
  CHECK(pair.b.engine->next_deadline() <= pair.now);
}

TEST_CASE("a program that was told of few messages is not waited for") {
  Pair pair;
  pair.post(12);
  pair.send();

  CHECK(pair.take() == kPackets);
  CHECK(pair.unexpected() == kMessages - 12);
}

TEST_CASE("a program that posted nothing in one pause is not waited for again") {
  Pair pair;
  pair.post(kPosted);
  pair.send();
  REQUIRE(pair.take() == kTaken);

  CHECK(pair.take() == kPackets - kTaken);

  pair.answer();
  pair.post(kMessages);  // messages that wait take some of these
  pair.send();
  CHECK(pair.take() == kPackets);
}

TEST_CASE("no packet times out while its ACK may lie unread behind a pause") {
  const bool unread = GENERATE(false, true);
  Pair pair;
  pair.post(kPosted);
  Request asked;
  pair.send(1);
  REQUIRE(pair.take() == 1);
  pair.send(kPosted - 1 + 2 * kInPacket);
  pair.b.engine->sending().send(pair.now, pair.back, kTag, pair.bytes, asked);
  pair.b.deliver_to(pair.a);
  pair.a.engine->progress(pair.now);
  if (!unread) pair.send(kInPacket);  // carries the ACK
  pair.now += milliseconds(300);

  REQUIRE(pair.take() == kTaken);
  if (unread) pair.send(kInPacket);
  pair.take();
  pair.take();
  CHECK(pair.b.engine->inspector().stats().timeouts == 0);
}

TEST_CASE("timers wait for 15 turns in a row at most, though several NICs leave packets in turn") {
  engine::ReceiveBackpressure pause;
  for (int turn = 1; turn <= 48; ++turn) CHECK(pause.holds_timers(true) == (turn % 16 != 0));
  CHECK(pause.holds_timers(true));
  CHECK_FALSE(pause.holds_timers(false));
  for (int turn = 1; turn <= 15; ++turn) CHECK(pause.holds_timers(true));
}

TEST_CASE("a pause holds for all channels whose packets find no receive") {
  const Instant now{std::chrono::seconds(1)};
  engine::ReceiveBackpressure pause;
  message::InboxCounters told;
  pause.begin_turn(now, told, false);
  told.messages = 16;
  CHECK(pause.due(told));
  CHECK(pause.due(told));

  pause.begin_turn(now, told, true);
  told.caught_up = 1;
  CHECK(pause.due(told));
}

TEST_CASE("after a pause in which nothing was posted there is none for 1024 packets") {
  const Instant now{std::chrono::seconds(1)};
  engine::ReceiveBackpressure pause;
  message::InboxCounters told;
  pause.begin_turn(now, told, false);
  told.messages = 16;
  REQUIRE(pause.due(told));
  pause.begin_turn(now, told, true);
  REQUIRE_FALSE(pause.due(told));  // no receive caught up

  for (int packet = 0; packet < 1024; ++packet) CHECK_FALSE(pause.due(told));
  CHECK(pause.due(told));
}

TEST_CASE("a pause lasts two milliseconds at most, however often the program posts") {
  Instant now{std::chrono::seconds(1)};
  engine::ReceiveBackpressure pause;
  message::InboxCounters told;
  pause.begin_turn(now, told, false);
  const Instant began = now;
  for (bool due = true; due;) {
    told.messages += 16;
    ++told.caught_up;
    due = pause.due(told);
    if (due) pause.begin_turn(now += microseconds(100), told, true);
  }
  CHECK(now == began + milliseconds(2) + microseconds(100));
}

}  // namespace pullman
