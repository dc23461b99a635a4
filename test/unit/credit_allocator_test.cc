#include "engine/nics/credit_allocator.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{10};

struct Shared {
  void hear(Peer& peer) { credits.note_heard(now, peer); }
  void later(Duration by) { credits.begin_turn(now += by); }

  FakeNics nics{2};  // each holds 512 packets
  FakePeers peers{nics.table};
  Instant now{std::chrono::seconds(1)};
  CreditAllocator credits{nics.table, now};
};

}  // namespace

TEST_CASE("a NIC that has heard no peer gives the first one credit for all it holds") {
  Shared shared;
  CHECK(shared.credits.credit_at(0) == 512);
}

TEST_CASE("what a NIC holds is shared among the peers heard in this tick of 10 ms and the last") {
  Shared shared;
  shared.hear(shared.peers.add());
  shared.hear(shared.peers.add());
  CHECK(shared.credits.credit_at(0) == 256);

  shared.later(kTick);
  CHECK(shared.credits.credit_at(0) == 256);

  shared.later(kTick);
  CHECK(shared.credits.credit_at(0) == 512);
}

TEST_CASE("credit counts the peers of the busier of two ticks: a peer heard in both is one") {
  Shared shared;
  Peer& often = shared.peers.add();
  Peer& once = shared.peers.add();
  shared.hear(often);
  shared.hear(once);
  shared.later(kTick);
  shared.hear(often);

  CHECK(shared.credits.credit_at(0) == 256);
}

TEST_CASE("a peer that is heard twice in a tick counts once") {
  Shared shared;
  Peer& peer = shared.peers.add();
  shared.hear(peer);
  shared.later(kTick - milliseconds(1));
  shared.hear(peer);

  CHECK(shared.credits.credit_at(0) == 512);
  CHECK(peer.heard_at == shared.now);
}

TEST_CASE("peers heard before a tick without a turn no longer count") {
  Shared shared;
  shared.hear(shared.peers.add());
  shared.hear(shared.peers.add());

  shared.later(2 * kTick);

  CHECK(shared.credits.credit_at(0) == 512);
}

TEST_CASE("a peer has credit for one packet at least, and for 4095 at most (wire.md 2.6)") {
  Shared shared;
  for (FakePort* port : {shared.nics[0].command, shared.nics[0].data}) {
    port->set_receive_packets(2);
  }
  for (FakePort* port : {shared.nics[1].command, shared.nics[1].data}) {
    port->set_receive_packets(100'000);
  }
  for (int i = 0; i < 3; ++i) shared.hear(shared.peers.add());

  CHECK(shared.credits.credit_at(0) == 1);
  CHECK(shared.credits.credit_at(1) == 4095);
}

TEST_CASE("a NIC's credit is for its channel that holds less") {
  Shared shared;
  shared.nics[1].command->set_receive_packets(64);
  shared.credits.share();

  CHECK(shared.credits.credit(shared.peers.add(1).home) == 64);
  CHECK(shared.credits.credit(shared.peers.add(0).home) == 512);
}

TEST_CASE(
    "a peer with several rails has the credit of our NIC that it sends to, not of the one we send "
    "from") {
  Shared shared;
  shared.nics[1].command->set_receive_packets(64);
  shared.credits.share();
  Peer& peer = shared.peers.add(0);
  give_rails(peer);
  upkeep_of(peer.home).here = 1;

  CHECK(shared.credits.credit(peer.home) == 64);
}

}  // namespace pullman::engine
