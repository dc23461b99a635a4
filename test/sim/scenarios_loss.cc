// Scenarios: loss, delay and acknowledgement. They are the specification.
#include <catch2/catch.hpp>

#include "sim/scene.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::FrameType;
using wire::PacketType;

// Drops the nth packet with a chunk or message that host 0 sends, once.
void drop_nth(Scene& scene, int nth) {
  scene.network().set_drop_rule([n = nth](const Passing& passing) mutable {
    const Opened packet(passing.bytes);
    const bool counts = passing.from.host == 0 &&
                        (packet.has(FrameType::kChunk) || packet.has(FrameType::kMessage));
    return counts && --n == 0;
  });
}

TEST_CASE("a message arrives once, as it was sent") {
  const std::size_t size =
      GENERATE(0u, 1u, 15u, 64u, 768u, 769u, 1400u, 1473u, 65536u, 65537u, 3000000u);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(1, back, 42, 4 << 20);

  Act& send = scene.send(0, there, 42, size);

  REQUIRE(scene.run_until_done(receive));
  REQUIRE(scene.run_until_done(send));
  CHECK(receive.status() == Status::kOk);
  CHECK(send.status() == Status::kOk);
  CHECK(Scene::holds(receive, 42, size));
  CHECK(receive.request.source() == back);
  CHECK(scene.stats(0).retransmits == 0);
  CHECK(scene.stats(1).duplicate_packets == 0);
}

TEST_CASE("a lost packet is recovered without waiting for the probe timeout") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(1, back, 1, 64 << 10);
  drop_nth(scene, 5);
  const Instant start = scene.now();

  scene.send(0, there, 1, 64 << 10);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1, 64 << 10));
  CHECK(scene.now() - start < microseconds(100));  // pto_min
  CHECK(scene.stats(0).retransmits == 1);
  CHECK(scene.stats(0).spurious_retransmits == 0);
  CHECK(scene.stats(0).timeouts == 0);
}

// wire.md 7.1
TEST_CASE("datagrams that the network duplicates do not delay the detection of a loss") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).duplicate = 1'000'000;
  for (Tag i = 0; i < 50; ++i) {
    Act& receive = scene.receive(1, back, i, 5000);
    scene.send(0, there, i, 5000);
    REQUIRE(scene.run_until_done(receive));
  }
  scene.network().wire(0, 1).duplicate = 0;
  REQUIRE(scene.stats(1).duplicate_packets > 100);
  CHECK(scene.stats(0).spurious_retransmits == 0);

  Act& receive = scene.receive(1, back, 99, 64 << 10);
  drop_nth(scene, 5);
  const Instant start = scene.now();
  scene.send(0, there, 99, 64 << 10);

  REQUIRE(scene.run_until_done(receive));
  CHECK(scene.now() - start < microseconds(100));
  CHECK(scene.stats(0).retransmits == 1);
  CHECK(scene.stats(0).spurious_retransmits == 0);
}

TEST_CASE("spurious retransmissions are counted and never exceed retransmissions, on any network") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  WireFaults& wire = scene.network().wire(0, 1);
  wire.loss = 50'000;
  wire.duplicate = 300'000;
  wire.reorder = 100'000;
  wire.reorder_by = microseconds(200);
  std::vector<Act*> receives;
  for (Tag i = 0; i < 200; ++i) {
    receives.push_back(&scene.receive(1, back, i, 20000));
    scene.send(0, there, i, 20000);
  }
  for (const Act* receive : receives) REQUIRE(scene.run_until_done(*receive));
  scene.run_for(milliseconds(100));

  const Stats stats = scene.stats(0);
  CHECK(scene.stats(1).duplicate_packets > stats.retransmits);
  CHECK(stats.spurious_retransmits > 0);
  CHECK(stats.spurious_retransmits <= stats.retransmits);
}

TEST_CASE("a lost last packet is recovered by a probe") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(1, back, 1, 100);
  drop_nth(scene, 1);

  scene.send(0, there, 1, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1, 100));
  CHECK(scene.stats(0).retransmits == 1);
  CHECK(scene.stats(0).probes_sent + scene.stats(0).timeouts >= 1);
}

TEST_CASE("without loss there is not one retransmission") {
  const Duration data_delay =
      GENERATE(microseconds(0), microseconds(3), microseconds(200), microseconds(900));
  const Duration jitter = GENERATE(microseconds(0), microseconds(100));
  Scene scene;
  for (const auto& [from, to] : {std::pair{0, 1}, std::pair{1, 0}}) {
    scene.network().wire(from, to).data_delay = data_delay;
    scene.network().wire(from, to).jitter = jitter;
  }
  const auto [there, back] = scene.couple(0, 1);

  std::vector<Act*> receives;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t size = i % 17 == 0 ? 60000 : i % 3 == 0 ? 1000 : 8;
    receives.push_back(&scene.receive(1, back, i, size));
    scene.send(0, there, i, size);
    receives.push_back(&scene.receive(0, there, i, size));
    scene.send(1, back, i, size);
    if (i % 10 == 0) scene.run_for(microseconds(60));
  }

  for (const Act* receive : receives) REQUIRE(scene.run_until_done(*receive));
  scene.run_for(milliseconds(100));
  for (std::size_t host : {0u, 1u}) {
    CHECK(scene.stats(host).retransmits == 0);
    CHECK(scene.stats(host).duplicate_packets == 0);
    CHECK(scene.stats(host).dropped_packets == 0);
  }
}

TEST_CASE("a delayed ACK leaves after exactly 50 us") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive_any(1);
  std::vector<Instant> acks;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.from.host == 1 && Opened(passing.bytes).is(PacketType::kControl)) {
      acks.push_back(passing.sent);
    }
  });

  scene.send(0, there, 1, 8);
  REQUIRE(scene.run_until_done(receive));
  const Instant arrived = scene.now();
  scene.run_for(milliseconds(10));

  REQUIRE(acks.size() == 1);
  CHECK(acks[0] - arrived == microseconds(50));
}

TEST_CASE("ping-pong sends no ACK alone") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  const auto acks = [&] { return scene.stats(0).acks_sent + scene.stats(1).acks_sent; };
  const std::uint64_t before = acks();

  for (Tag i = 0; i < 50; ++i) {
    Act& ping = scene.receive(1, back, i, 64);
    Act& pong = scene.receive(0, there, i, 64);
    scene.send(0, there, i, 64);
    REQUIRE(scene.run_until_done(ping));
    scene.send(1, back, i, 64);
    REQUIRE(scene.run_until_done(pong));
  }

  CHECK(acks() == before);
  CHECK(scene.stats(0).retransmits == 0);
}

TEST_CASE("heavy loss both ways delays messages and loses none") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 200'000;
  scene.network().wire(1, 0).loss = 200'000;
  std::vector<Act*> acts;
  for (Tag i = 0; i < 100; ++i) {
    acts.push_back(&scene.receive(1, back, i, 20000));
    acts.push_back(&scene.send(0, there, i, i * 200));
  }

  for (const Act* act : acts) {
    REQUIRE(scene.run_until_done(*act));
    CHECK(act->status() == Status::kOk);
  }
  CHECK(scene.stats(0).retransmits > 0);
}

TEST_CASE("a one-way partition heals and nothing is lost") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  const bool forward = GENERATE(true, false);
  scene.network().partitions().push_back({.from = static_cast<std::uint8_t>(forward ? 0 : 1),
                                          .to = static_cast<std::uint8_t>(forward ? 1 : 0),
                                          .start = scene.now(),
                                          .end = scene.now() + milliseconds(500)});
  std::vector<Act*> acts;
  for (Tag i = 0; i < 20; ++i) {
    acts.push_back(&scene.receive(1, back, i, 5000));
    acts.push_back(&scene.receive(0, there, i, 5000));
    acts.push_back(&scene.send(0, there, i, 5000));
    acts.push_back(&scene.send(1, back, i, 100));
  }

  for (const Act* act : acts) {
    REQUIRE(scene.run_until_done(*act, seconds(3)));
    CHECK(act->status() == Status::kOk);
  }
}

TEST_CASE("a program that polls every 50 ms gets all its messages") {
  Scene scene(2, [](NodePlan& plan) { plan.polls_once = true; });
  scene.node(1).set_poll_interval(milliseconds(50));
  const auto [there, back] = scene.couple(0, 1);
  std::vector<Act*> acts;
  for (Tag i = 0; i < 200; ++i) {
    acts.push_back(&scene.receive(1, back, i, 3000));
    acts.push_back(&scene.send(0, there, i, i % 2 == 0 ? 8 : 3000));
  }

  for (const Act* act : acts) {
    REQUIRE(scene.run_until_done(*act, seconds(60)));
    CHECK(act->status() == Status::kOk);
  }
}

// wire.md 7.3; the simulator's seed 26602.
TEST_CASE("when all packets of the pool are lost, one of them serves as the probe") {
  Scene scene(2, [](NodePlan& plan) { plan.config.send_packets = 64; });
  const auto [there, back] = scene.couple(0, 1);
  Act& warm = scene.receive(1, back, 1, 300'000);
  scene.send(0, there, 1, 300'000);
  REQUIRE(scene.run_until_done(warm));
  Act& first = scene.receive(1, back, 2, 300'000);
  Act& second = scene.receive(1, back, 3, 300'000);

  scene.network().set_drop_rule([](const Passing& passing) { return passing.from.host == 0; });
  scene.send(0, there, 2, 300'000);
  scene.send(0, there, 3, 300'000);
  scene.run_for(milliseconds(500));
  REQUIRE(scene.engine(0).inspector().audit().packets_in_flight >= 64);
  scene.network().set_drop_rule({});

  REQUIRE(scene.run_until([&] { return first.done() && second.done(); }, seconds(5)));
  CHECK(Scene::holds(first, 2, 300'000));
  CHECK(Scene::holds(second, 3, 300'000));
}

}  // namespace
}  // namespace pullman::sim
