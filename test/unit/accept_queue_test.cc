#include "engine/session/accept_queue.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPtoInitial{100};

struct Callers {
  explicit Callers(std::size_t max_peers = 8) : config(of(max_peers)), peers(nics.table, config) {}
  static Config of(std::size_t max_peers) {
    Config config;
    config.max_peers = max_peers;
    config.pto_initial = kPtoInitial;
    return config;
  }
  Peer& call(std::uint64_t epoch = 1) {
    Peer& peer = peers.add();
    const wire::ConnectionId reply_to{peer.id.index, 50};
    queue.add_half_open({.id = peer.id, .epoch = epoch, .reply_to = reply_to, .since = now});
    return peer;
  }
  void fill() {
    while (!queue.half_open_is_full()) call();
  }

  FakeNics nics{1};
  Config config;
  FakePeers peers;
  AcceptQueue queue{config, peers.table()};
  Instant now{std::chrono::seconds(1)};
};

std::size_t half_open_at_most(std::size_t max_peers) {
  Callers callers(max_peers);
  callers.fill();
  return callers.peers.table().size();
}

}  // namespace

TEST_CASE(
    "half-open callers may take a quarter of the peers, or 64 if that is more (wire.md 5.5)") {
  CHECK(half_open_at_most(400) == 100);
  CHECK(half_open_at_most(100) == 64);
  CHECK(half_open_at_most(8) == 8);
}

TEST_CASE("a half-open caller is found by its epoch and the connection it is answered at") {
  Callers callers;
  callers.call(1);
  const Peer& peer = callers.call(2);

  CHECK(callers.queue.find_half_open(2, {1, 50}) == peer.id);
  CHECK(callers.queue.find_half_open(1, {1, 50}) == std::nullopt);
  CHECK(callers.queue.find_half_open(2, {1, 51}) == std::nullopt);
}

TEST_CASE("all callers of one process are found, the oldest first") {
  Callers callers;
  const PeerId first = callers.call(2).id;
  callers.call(1);
  const PeerId last = callers.call(2).id;

  CHECK(callers.queue.half_open_of(2) == std::vector{first, last});
}

TEST_CASE("a caller that has proved itself, or ended, makes room for another") {
  Callers callers;
  callers.fill();
  callers.queue.remove_half_open(*callers.peers.table().at(3));

  CHECK_FALSE(callers.queue.half_open_is_full());
  CHECK(callers.queue.find_half_open(1, {3, 50}) == std::nullopt);
  CHECK(callers.queue.any_half_open());
}

TEST_CASE("the oldest caller is overdue after two initial timeouts, and not sooner") {
  Callers callers;
  CHECK_FALSE(callers.queue.oldest_is_overdue(callers.now));
  callers.call();
  const Instant called = callers.now;
  callers.now += kPtoInitial;
  callers.call();

  CHECK_FALSE(callers.queue.oldest_is_overdue(called + 2 * kPtoInitial - Duration(1)));
  CHECK(callers.queue.oldest_is_overdue(called + 2 * kPtoInitial));
}

TEST_CASE("a caller that repeats its HELLO starts its time again and becomes the newest") {
  Callers callers;
  const Peer& again = callers.call();
  const Peer& other = callers.call();
  REQUIRE(callers.queue.oldest_half_open() == again.id);
  const Instant called = callers.now;

  CHECK(callers.queue.renew(called + kPtoInitial, again.id));
  CHECK(callers.queue.oldest_half_open() == other.id);
  callers.queue.remove_half_open(other);
  CHECK_FALSE(callers.queue.oldest_is_overdue(called + 2 * kPtoInitial));
  CHECK(callers.queue.oldest_is_overdue(called + 3 * kPtoInitial));
}

TEST_CASE("a HELLO repeated within half an initial timeout does not extend its caller's time") {
  Callers callers;
  const Peer& peer = callers.call();
  const Instant called = callers.now;

  CHECK(callers.queue.renew(called + kPtoInitial / 2 - Duration(1), peer.id));
  CHECK(callers.queue.oldest_is_overdue(called + 2 * kPtoInitial));
}

TEST_CASE("while all places are taken a caller's time is renewed three times at most") {
  Callers callers;
  const PeerId id = callers.call().id;
  callers.fill();
  for (int time = 0; time < 3; ++time) {
    CHECK(callers.queue.renew(callers.now += kPtoInitial, id));
  }
  CHECK_FALSE(callers.queue.renew(callers.now + kPtoInitial, id));

  callers.queue.remove_half_open(*callers.peers.table().at(3));
  CHECK(callers.queue.renew(callers.now + kPtoInitial, id));
}

TEST_CASE("peers are accepted in the order in which they proved themselves, once each") {
  Callers callers;
  const Peer& one = callers.peers.add();
  const Peer& two = callers.peers.add();
  callers.queue.announce(two);
  callers.queue.announce(one);

  CHECK(callers.queue.accept() == two.id);
  CHECK(callers.queue.accept() == one.id);
  CHECK(callers.queue.accept() == std::nullopt);
}

TEST_CASE("a peer that has ended is not accepted, nor is the peer that took its slot") {
  Callers callers;
  Peer& one = callers.peers.add();
  callers.queue.announce(one);
  callers.peers.table().remove(one);
  callers.peers.add();

  CHECK(callers.queue.accept() == std::nullopt);
}

TEST_CASE("an announced peer is accepted although many later ones ended unaccepted") {
  Callers callers(4);
  const PeerId stays = callers.peers.add().id;
  callers.queue.announce(*callers.peers.table().find(stays));
  for (int i = 0; i < 20; ++i) {
    Peer& goes = callers.peers.add();
    callers.queue.announce(goes);
    callers.peers.table().remove(goes);
  }

  CHECK(callers.queue.accept() == stays);
}

}  // namespace pullman::engine
