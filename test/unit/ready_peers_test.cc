#include "engine/send/ready_peers.h"

#include <catch2/catch.hpp>
#include <vector>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

struct Five {
  Five() {
    for (int i = 0; i < 5; ++i) ready.mark(peers.add());
  }
  Peer& operator[](std::uint32_t index) { return *peers.table().at(index); }
  std::vector<std::uint32_t> serve_all() {
    std::vector<std::uint32_t> served;
    while (!ready.empty()) served.push_back(ready.take_first().id.index);
    return served;
  }

  FakeNics nics{1};
  FakePeers peers{nics.table};
  ReadyPeers ready;
};

using Order = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("peers are served in the order in which they became ready") {
  Five five;
  five.ready.remove(five[0]);
  five.ready.mark(five[0]);

  CHECK(five.serve_all() == Order{1, 2, 3, 4, 0});
}

TEST_CASE("a peer that is marked ready again keeps its one place") {
  Five five;
  five.ready.mark(five[1]);

  CHECK(five.ready.size() == 5);
  CHECK(five.serve_all() == Order{0, 1, 2, 3, 4});
}

TEST_CASE("peers that were refused are served first in the next turn, in order") {
  Five five;
  five[1].refused = five[3].refused = true;

  five.ready.put_refused_first();

  CHECK(five.serve_all() == Order{1, 3, 0, 2, 4});
}

TEST_CASE("a refusal counts for one turn only") {
  Five five;
  five[3].refused = true;
  five.ready.put_refused_first();
  five.ready.remove(five[3]);
  five.ready.mark(five[3]);

  five.ready.put_refused_first();

  CHECK(five.serve_all() == Order{0, 1, 2, 4, 3});
}

TEST_CASE("peers that are all blocked on the pool need no turn until packets come back") {
  Five five;
  five.ready.begin_turn();
  for (int i = 0; i < 4; ++i) five.ready.note_blocked_on_pool();
  CHECK(five.ready.any_unblocked());
  five.ready.note_blocked_on_pool();
  CHECK_FALSE(five.ready.any_unblocked());

  five.ready.note_packets_returned();
  CHECK(five.ready.any_unblocked());
}

TEST_CASE("whether a peer is blocked on the pool is determined anew each turn") {
  Five five;
  five.ready.begin_turn();
  for (int i = 0; i < 5; ++i) five.ready.note_blocked_on_pool();

  five.ready.begin_turn();

  CHECK(five.ready.any_unblocked());
}

TEST_CASE("a peer that becomes ready ends the stalled turns; one that was ready does not") {
  Five five;
  five.ready.set_stalled_turns(3);
  five.ready.mark(five[2]);
  CHECK(five.ready.stalled_turns() == 3);

  five.ready.remove(five[2]);
  five.ready.mark(five[2]);
  CHECK(five.ready.stalled_turns() == 0);
}

}  // namespace pullman::engine
