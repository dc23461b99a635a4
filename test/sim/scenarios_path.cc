// Scenarios: paths that carry shorter packets than the NICs at their ends.
#include <catch2/catch.hpp>

#include "sim/scene.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::FrameType;

void narrow(Scene& scene, std::uint8_t from, std::uint8_t to, std::size_t bytes,
            bool tells = false) {
  scene.network().narrowings().push_back(
      {.from = from, .to = to, .start = scene.now(), .bytes = bytes, .tells = tells});
}

std::size_t packet_bytes(Scene& scene, std::size_t host, PeerId peer) {
  return scene.engine(host).inspector().link(peer)->packet_bytes;
}

void jumbo(NodePlan& plan) {
  plan.data.packet_bytes = 8972;
}

// Sends messages one after the other, from which the packet size settles.
void chat(Scene& scene, Scene::Couple pair, std::size_t size, Tag messages = 150) {
  for (Tag i = 0; i < messages; ++i) {
    Act& receive = scene.receive(1, pair.back, 1000 + i, size);
    scene.send(0, pair.there, 1000 + i, size);
    REQUIRE(scene.run_until_done(receive));
    REQUIRE(Scene::holds(receive, 1000 + i, size));
  }
}

TEST_CASE("messages of any size arrive through a path that was narrow from the beginning") {
  const bool tells = GENERATE(false, true);
  const std::size_t carried = GENERATE(576u, 600u, 1199u, 1200u, 1252u, 1472u, 5000u);
  const std::size_t size = GENERATE(600u, 1400u, 1441u, 8900u, 65536u, 500'000u);
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, carried, tells);
  const auto pair = scene.couple(0, 1);

  CAPTURE(tells, carried, size);
  Act& receive = scene.receive(1, pair.back, 7, size);
  Act& send = scene.send(0, pair.there, 7, size);

  REQUIRE(scene.run_until_done(receive, seconds(1)));
  REQUIRE(scene.run_until_done(send, seconds(1)));
  CHECK(Scene::holds(receive, 7, size));
}

TEST_CASE("packets become nearly as long as the path carries, and never longer") {
  const std::size_t carried = GENERATE(1200u, 1252u, 1372u, 1472u, 4000u, 8971u);
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, carried);
  const auto pair = scene.couple(0, 1);

  chat(scene, pair, 100'000);

  CHECK(packet_bytes(scene, 0, pair.there) <= carried);
  CHECK(packet_bytes(scene, 0, pair.there) + carried / 64 + 1 >= carried);
  CHECK(packet_bytes(scene, 1, pair.back) == 8972);
  CHECK(scene.stats(0).path_black_holes == 1);
}

TEST_CASE("the path MTU that the network reports is believed when packets are lost, to the byte") {
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, 1353, true);
  const auto pair = scene.couple(0, 1);

  chat(scene, pair, 100'000);

  CHECK(packet_bytes(scene, 0, pair.there) == 1353);
  CHECK(scene.stats(0).path_probes_sent <= 3);
}

TEST_CASE("a path that becomes narrow during a message is detected within milliseconds") {
  const bool tells = GENERATE(false, true);
  Scene scene(2, jumbo);
  const auto pair = scene.couple(0, 1);
  scene.network().wire(0, 1).ns_per_kib = 2000;
  Act& receive = scene.receive(1, pair.back, 7, 3'000'000);
  scene.send(0, pair.there, 7, 3'000'000);
  scene.run_for(milliseconds(2));

  narrow(scene, 0, 1, 1400, tells);

  REQUIRE(scene.run_until_done(receive, milliseconds(100)));
  CHECK(Scene::holds(receive, 7, 3'000'000));
  CHECK(packet_bytes(scene, 0, pair.there) <= 1400);
}

TEST_CASE("small messages that shared a packet too long for the path arrive one by one, in order") {
  Scene scene(2, jumbo);
  const auto pair = scene.couple(0, 1);
  narrow(scene, 0, 1, 1200);
  std::vector<Act*> receives;
  for (Tag i = 0; i < 60; ++i) {
    const std::size_t size = i % 7 == 3 ? 3000 : i * 9;
    receives.push_back(&scene.receive(1, pair.back, i, size));
    scene.send(0, pair.there, i, size);
  }

  for (Tag i = 0; i < 60; ++i) {
    REQUIRE(scene.run_until_done(*receives[i], seconds(1)));
    CHECK(Scene::holds(*receives[i], i, i % 7 == 3 ? 3000 : i * 9));
  }
  scene.run_for(milliseconds(100));
  CHECK(scene.engine(0).inspector().audit().packets_taken == 0);
}

TEST_CASE("when the path becomes wide again packets grow to the NICs' size") {
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, 1400);
  const auto pair = scene.couple(0, 1);
  chat(scene, pair, 100'000);
  REQUIRE(packet_bytes(scene, 0, pair.there) <= 1400);

  narrow(scene, 0, 1, kAnyLength);
  scene.run_for(seconds(10));
  chat(scene, pair, 100'000, 3);

  CHECK(packet_bytes(scene, 0, pair.there) == 8972);
  CHECK(scene.stats(0).path_black_holes == 1);
}

TEST_CASE("a narrow path is probed again after 10, 20, 40 seconds, and at last every ten minutes") {
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, 1400);
  const auto pair = scene.couple(0, 1);
  chat(scene, pair, 100'000);
  std::vector<Instant> probed;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.bytes.size() == 8972 && Opened(passing.bytes).has(FrameType::kPadding) &&
        (probed.empty() || scene.now() - probed.back() > seconds(5))) {
      probed.push_back(scene.now());
    }
  });

  for (int i = 0; i < 3000; ++i) {
    scene.run_for(seconds(1));
    chat(scene, pair, 10'000, 1);
  }

  REQUIRE(probed.size() == 9);  // 10 + 20 + ... + 320 = 630, 1230, 1830, 2430
  CHECK(probed.back() - probed[probed.size() - 2] > seconds(599));
}

TEST_CASE("a false path MTU costs a round trip of probing and is not believed twice") {
  Scene scene(2, jumbo);
  const auto pair = scene.couple(0, 1);
  scene.network().tell(0, 1, 68);
  scene.network().wire(0, 1).loss = 20'000;
  std::size_t shortest = 8972;
  for (Tag i = 0; i < 40; ++i) {
    chat(scene, pair, 100'000, 1);
    shortest = std::min(shortest, packet_bytes(scene, 0, pair.there));
  }
  scene.network().wire(0, 1).loss = 0;
  chat(scene, pair, 100'000, 2);

  CHECK(scene.stats(0).retransmits > 5);
  CHECK(shortest >= 1200);
  CHECK(packet_bytes(scene, 0, pair.there) == 8972);
  CHECK(scene.stats(0).path_black_holes == 1);
}

TEST_CASE("the path MTU that the network reports is ignored while packets arrive") {
  Scene scene(2, jumbo);
  const auto pair = scene.couple(0, 1);
  scene.network().tell(0, 1, 1280);

  chat(scene, pair, 100'000);

  CHECK(packet_bytes(scene, 0, pair.there) == 8972);
  CHECK(scene.stats(0).path_probes_sent == 0);
}

TEST_CASE("random loss does not make packets short for long") {
  Scene scene(2, jumbo);
  const auto pair = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 200'000;
  chat(scene, pair, 100'000, 200);
  scene.network().wire(0, 1).loss = 0;

  scene.run_for(seconds(10));
  chat(scene, pair, 100'000, 20);

  CHECK(packet_bytes(scene, 0, pair.there) == 8972);
}

TEST_CASE("the two directions between two peers may have different packet sizes") {
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, 1400);
  narrow(scene, 1, 0, 4500);
  const auto pair = scene.couple(0, 1);
  for (Tag i = 0; i < 40; ++i) {
    Act& there = scene.receive(1, pair.back, i, 100'000);
    Act& back = scene.receive(0, pair.there, i, 100'000);
    scene.send(0, pair.there, i, 100'000);
    scene.send(1, pair.back, i, 100'000);
    REQUIRE(scene.run_until([&] { return there.done() && back.done(); }));
  }

  CHECK(packet_bytes(scene, 0, pair.there) <= 1400);
  CHECK(packet_bytes(scene, 0, pair.there) >= 1370);
  CHECK(packet_bytes(scene, 1, pair.back) <= 4500);
  CHECK(packet_bytes(scene, 1, pair.back) >= 4420);
}

// wire.md 7.3: one of them serves as the probe, and must be short enough to arrive.
TEST_CASE("a black hole is found although it swallowed every packet of the pool") {
  Scene scene(2, [](NodePlan& plan) { plan.config.send_packets = 64; });
  const auto pair = scene.couple(0, 1);
  chat(scene, pair, 300'000, 4);
  Act& first = scene.receive(1, pair.back, 2, 300'000);
  Act& second = scene.receive(1, pair.back, 3, 300'000);

  scene.network().set_drop_rule([](const Passing& passing) { return passing.from.host == 0; });
  scene.send(0, pair.there, 2, 300'000);
  scene.send(0, pair.there, 3, 300'000);
  scene.run_for(milliseconds(500));
  REQUIRE(scene.engine(0).inspector().audit().packets_in_flight >= 64);
  narrow(scene, 0, 1, 1300);
  scene.network().set_drop_rule({});

  REQUIRE(scene.run_until([&] { return first.done() && second.done(); }, seconds(5)));
  CHECK(Scene::holds(first, 2, 300'000));
  CHECK(packet_bytes(scene, 0, pair.there) <= 1300);
}

TEST_CASE("a peer that closes while its path is being probed still closes in good order") {
  Scene scene(2, jumbo);
  narrow(scene, 0, 1, 1400);
  const auto pair = scene.couple(0, 1);
  Act& receive = scene.receive(1, pair.back, 1, 200'000);
  Act& send = scene.send(0, pair.there, 1, 200'000);
  scene.begin_close(0);

  REQUIRE(scene.run_until([&] { return scene.engine(0).drained(); }, milliseconds(700)));
  CHECK(send.status() == Status::kOk);
  CHECK(Scene::holds(receive, 1, 200'000));
}

}  // namespace
}  // namespace pullman::sim
