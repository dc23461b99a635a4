// Scenarios: how peers meet, part, restart and fall silent. They are the specification: read them
// so.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include "sim/scene.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

TEST_CASE("first messages ride along with the HELLO") {
  Scene scene;
  std::vector<PacketType> sent;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.from.host == 0) sent.push_back(Opened(passing.bytes).header->type);
  });
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 9, 100));
  // Nothing but the proof that the WELCOME came followed.
  CHECK(sent == std::vector{PacketType::kHello, PacketType::kControl});
}

TEST_CASE("a lost HELLO and a lost WELCOME are sent again, and the first message arrives once") {
  const int lost = GENERATE(1, 2, 3);
  const std::uint8_t loser = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  Scene scene;
  scene.network().set_drop_rule([&, n = lost](const Passing& passing) mutable {
    return passing.from.host == loser && n-- > 0;
  });
  Act& receive = scene.receive_any(1);
  Act& none = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 9, 100));
  REQUIRE(
      scene.run_until([&] { return scene.engine(0).peer_state(there) == PeerState::kConnected; }));
  scene.run_for(seconds(2));
  CHECK_FALSE(none.done());
}

// wire.md 5.9; the simulator's seeds 11180, 11228, 29157, 33250.
TEST_CASE("a proof that is lost is given again, even by a caller that has nothing more to say") {
  const int lost = GENERATE(1, 3);
  Scene scene;
  scene.network().set_drop_rule([&, n = lost](const Passing& passing) mutable {
    return passing.from.host == 0 && !Opened(passing.bytes).is(PacketType::kHello) && n-- > 0;
  });
  Act& at_one = scene.receive_any(1);
  Act& at_zero = scene.receive_any(0);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);
  scene.run_for(microseconds(100));
  const PeerId back = scene.connect(1, 0);
  scene.send(1, back, 7, 100);

  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }));
  CHECK(Scene::holds(at_one, 9, 100));
  CHECK(Scene::holds(at_zero, 7, 100));
}

TEST_CASE("a HELLO is acknowledged when its riders are delivered, not before") {
  Scene scene;
  bool acked_by_welcome = false;
  scene.network().set_observer([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (opened.is(PacketType::kWelcome)) acked_by_welcome = opened.header->has(wire::kFlagAck);
  });
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK_FALSE(acked_by_welcome);
  REQUIRE(scene.run_until([&] { return scene.engine(0).audit().packets_in_flight == 0; }));
  CHECK(scene.stats(0).probes_sent == 0);
}

TEST_CASE("connecting twice gives the same handle") {
  Scene scene;

  const PeerId first = scene.connect(0, 1);
  const PeerId second = scene.connect(0, 1);
  scene.run_for(milliseconds(10));
  const PeerId third = scene.connect(0, 1);

  CHECK(first == second);
  CHECK(first == third);
}

TEST_CASE("simultaneous connects end in one peer on each side") {
  const Duration head_start =
      GENERATE(microseconds(0), microseconds(1), microseconds(4), microseconds(5), microseconds(9));
  const bool with_loss = GENERATE(false, true);
  Scene scene;
  if (with_loss) scene.network().wire(0, 1).loss = scene.network().wire(1, 0).loss = 300'000;
  Act& at_one = scene.receive_any(1);
  Act& at_zero = scene.receive_any(0);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 1, 100);
  scene.run_for(head_start);
  const PeerId back = scene.connect(1, 0);
  scene.send(1, back, 2, 100);

  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }));
  scene.run_for(seconds(1));
  CHECK(Scene::holds(at_one, 1, 100));
  CHECK(Scene::holds(at_zero, 2, 100));
  CHECK(at_one.request.source() == back);
  CHECK(at_zero.request.source() == there);
  for (std::size_t host : {0u, 1u}) CHECK(scene.stats(host).peers_connected == 1);
}

TEST_CASE("a restarted peer is a new epoch: operations to the old one fail with kPeerRestarted") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& old_receive = scene.receive(0, there, 1, 10);

  scene.restart(1);
  Act& old_send = scene.send(0, there, 2, 200000);
  const PeerId anew = scene.connect(1, 0);  // the new process calls

  REQUIRE(scene.run_until_done(old_send));
  REQUIRE(scene.run_until_done(old_receive));
  CHECK(old_send.status() == Status::kPeerRestarted);
  CHECK(old_receive.status() == Status::kPeerRestarted);
  CHECK(scene.engine(0).peer_status(there) == Status::kPeerRestarted);
  CHECK(scene.send(0, there, 3, 10).status() != Status::kOk);
  Act& receive = scene.receive_any(0);
  scene.send(1, anew, 4, 100);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 4, 100));
  CHECK_FALSE(receive.request.source() == there);
}

TEST_CASE("a silent peer fails every pending operation after peer_timeout") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(0, there, 1, 10);
  scene.node(1).stall_until(scene.now() + seconds(1000));
  const Instant start = scene.now();

  Act& large = scene.send(0, there, 2, 200000);
  REQUIRE(scene.run_until_done(large, seconds(20)));
  const Duration waited = scene.now() - start;
  scene.run_for(milliseconds(1));

  CHECK(large.status() == Status::kUnreachable);
  CHECK(receive.status() == Status::kUnreachable);
  CHECK(waited >= seconds(9));
  CHECK(waited <= seconds(12));
  CHECK(scene.engine(0).peer_state(there) == PeerState::kGone);
  CHECK(scene.send(0, there, 3, 1).status() == Status::kUnreachable);
  CHECK(scene.engine(0).audit().packets_in_flight == 0);
}

// The simulator's seed 70460.
TEST_CASE("half a message of a silent peer is not kept for ever") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().set_drop_rule([&, n = 1](const Passing& passing) mutable {
    return passing.from.host == 0 && passing.from.channel == Channel::kData && n-- > 0;
  });

  scene.send(0, there, 1, 5000);
  scene.run_for(microseconds(20));
  scene.node(0).end(true);
  REQUIRE(scene.engine(1).audit().unexpected_bytes > 0);
  scene.run_for(seconds(15));

  CHECK(scene.engine(1).audit().unexpected_bytes == 0);
  CHECK(scene.engine(1).peer_status(back) == Status::kUnreachable);
}

TEST_CASE("a peer that never answers is unreachable after peer_timeout") {
  Scene scene;
  scene.node(1).end(true);

  const PeerId there = scene.connect(0, 1);
  Act& send = scene.send(0, there, 1, 100000);

  REQUIRE(scene.run_until_done(send, seconds(15)));
  CHECK(send.status() == Status::kUnreachable);
  CHECK(scene.engine(0).audit().packets_taken == 0);
}

TEST_CASE("an idle connection outlives peer_timeout") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);

  scene.run_for(seconds(60));
  Act& receive = scene.receive(1, back, 1, 10);
  scene.send(0, there, 1, 10);

  REQUIRE(scene.run_until_done(receive));
  CHECK(receive.status() == Status::kOk);
}

TEST_CASE("disconnect delivers what was accepted, and tells the peer") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 100'000;
  Act& receive = scene.receive(1, back, 1, 50000);
  Act& never = scene.receive(1, back, 2, 10);

  Act& send = scene.send(0, there, 1, 50000);
  scene.disconnect(0, there);

  REQUIRE(scene.run_until([&] { return receive.done() && never.done() && send.done(); }));
  CHECK(receive.status() == Status::kOk);
  CHECK(Scene::holds(receive, 1, 50000));
  CHECK(send.status() == Status::kOk);
  CHECK(never.status() == Status::kPeerClosed);
  CHECK(scene.engine(1).peer_status(back) == Status::kPeerClosed);
}

TEST_CASE("close drains") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 100'000;
  std::vector<Act*> receives;
  for (Tag i = 0; i < 50; ++i) {
    scene.send(0, there, i, i * 500);
    receives.push_back(&scene.receive(1, back, i, 50 * 500));
  }

  scene.begin_close(0);
  Act& refused = scene.send(0, there, 99, 10);

  CHECK(refused.status() == Status::kClosed);
  REQUIRE(scene.run_until([&] { return scene.engine(0).drained(); }, seconds(10)));
  for (const Act* receive : receives) CHECK(receive->status() == Status::kOk);
}

TEST_CASE("close ends in time when the peer is silent") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.node(1).stall_until(scene.now() + seconds(1000));
  Act& send = scene.send(0, there, 1, 100000);

  scene.begin_close(0);
  scene.run_until([&] { return scene.engine(0).drained(); }, seconds(30));
  scene.engine(0).abort();

  CHECK(send.done());
  CHECK(send.status() != Status::kOk);
}

TEST_CASE("a peer beyond max_peers is refused") {
  Scene scene(3, [](NodePlan& plan) { plan.config.max_peers = 1; });
  scene.couple(0, 1);

  const PeerId there = scene.connect(2, 1);
  Act& send = scene.send(2, there, 1, 100000);

  REQUIRE(scene.run_until_done(send));
  CHECK((send.status() == Status::kRefused || send.status() == Status::kUnreachable));
  CHECK(scene.stats(1).peers_connected == 1);
}

}  // namespace
}  // namespace pullman::sim
