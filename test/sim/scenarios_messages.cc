// Scenarios: matching, memory and bad input. They are the specification.
#include <catch2/catch.hpp>

#include "sim/draw.h"
#include "sim/scene.h"
#include "sim/sim_port.h"
#include "wire/hello.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Tag kAnyTag = ~Tag{0};

TEST_CASE("a truncated receive says so and the next message is unharmed") {
  const std::size_t size = GENERATE(100u, 5000u, 200000u);
  const bool posted_first = GENERATE(true, false);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act* shorter = posted_first ? &scene.receive(1, back, 1, 50) : nullptr;

  scene.send(0, there, 1, size);
  scene.send(0, there, 2, size);
  scene.run_for(milliseconds(5));
  if (!posted_first) shorter = &scene.receive(1, back, 1, 50);
  Act& next = scene.receive(1, back, 2, size);

  REQUIRE(scene.run_until_done(*shorter));
  REQUIRE(scene.run_until_done(next));
  CHECK(shorter->status() == Status::kTruncated);
  CHECK(Scene::holds(*shorter, 1, size));
  CHECK(next.status() == Status::kOk);
  CHECK(Scene::holds(next, 2, size));
}

TEST_CASE("messages of one sender match in the order sent, whatever their size") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).data_delay = milliseconds(2);

  for (std::size_t i = 0; i < 20; ++i) scene.send(0, there, 7, i % 2 == 0 ? 30000 - i : 10 + i);
  std::vector<Act*> receives;
  receives.reserve(20);
  for (int i = 0; i < 20; ++i) receives.push_back(&scene.receive(1, back, 7, 30000));

  for (std::size_t i = 0; i < 20; ++i) {
    REQUIRE(scene.run_until_done(*receives[i]));
    CHECK(Scene::holds(*receives[i], 7, i % 2 == 0 ? 30000 - i : 10 + i));
  }
}

TEST_CASE("a receive takes only what its tag and mask allow") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& exact = scene.receive(1, back, 0x12, 10);
  Act& masked = scene.receive(1, back, 0x20, 10, 0x0F);
  Act& any = scene.receive(1, kAnyPeer, 0, 10, kAnyTag);

  scene.send(0, there, 0x99, 1);
  scene.send(0, there, 0x2A, 2);
  scene.send(0, there, 0x12, 3);

  REQUIRE(scene.run_until([&] { return exact.done() && masked.done() && any.done(); }));
  CHECK(Scene::holds(any, 0x99, 1));
  CHECK(Scene::holds(masked, 0x2A, 2));
  CHECK(Scene::holds(exact, 0x12, 3));
}

TEST_CASE("a cancelled receive takes no message") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& first = scene.receive(1, back, 1, 10);
  Act& second = scene.receive(1, back, 1, 10);

  CHECK(scene.engine(1).matching().cancel(first.request));
  scene.send(0, there, 1, 10);

  REQUIRE(scene.run_until_done(second));
  CHECK(first.status() == Status::kCancelled);
  CHECK(Scene::holds(second, 1, 10));
  CHECK_FALSE(scene.engine(1).matching().cancel(second.request));
}

TEST_CASE("probe sees the message that a receive would match, and leaves it there") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  CHECK_FALSE(scene.engine(1).matching().probe(kAnyPeer, 0, kAnyTag));
  const std::size_t size = GENERATE(10u, 300000u);

  scene.send(0, there, 5, size);
  scene.run_for(milliseconds(10));

  const auto probe = scene.engine(1).matching().probe(back, 5, 0);
  REQUIRE(probe);
  CHECK(probe->length == size);
  CHECK(probe->source == back);
  CHECK_FALSE(scene.engine(1).matching().probe(back, 6, 0));
  Act& receive = scene.receive(1, probe->source, probe->tag, size);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 5, size));
}

TEST_CASE("unexpected messages stop the sender, and do not grow the receiver's memory") {
  constexpr std::size_t kBudget = 64 * 1024;
  const std::size_t size = GENERATE(8u, 1000u, 20000u);
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 4;
    plan.config.unexpected_bytes = kBudget;
  });
  const auto [there, back] = scene.couple(0, 1);
  constexpr int kMessages = 500;
  std::vector<Act*> sends;

  for (Tag i = 0; i < kMessages; ++i) sends.push_back(&scene.send(0, there, i, size));
  scene.run_for(seconds(5));

  CHECK(scene.engine(1).inspector().audit().unexpected_bytes <= kBudget);
  CHECK_FALSE(sends.back()->done());
  for (Tag i = 0; i < kMessages; ++i) {
    Act& receive = scene.receive(1, back, i, size);
    REQUIRE(scene.run_until_done(receive));
    CHECK(Scene::holds(receive, i, size));
  }
  REQUIRE(scene.run_until_done(*sends.back()));
  CHECK(scene.stats(0).retransmits == 0);
}

TEST_CASE("a message is received before hundreds that were sent earlier and are not received") {
  constexpr std::size_t kBudget = 1 << 20;
  const std::size_t size = GENERATE(8u, 5000u, 300'000u);
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = kBudget;
  });
  const auto [there, back] = scene.couple(0, 1);
  if (GENERATE(false, true)) scene.network().wire(0, 1).loss = 50'000;
  std::vector<Act*> sends;

  for (Tag i = 0; i < 300; ++i) sends.push_back(&scene.send(0, there, i, 2000));
  scene.send(0, there, 1000, size);
  Act& receive = scene.receive(1, back, 1000, size);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1000, size));
  CHECK_FALSE(sends.back()->done());
  CHECK(scene.stats(0).announced_sends > 80);
  for (int i = 0; i < 300; ++i) {  // more than may be announced at once
    scene.send(0, there, 1000, 1500);
    Act& next = scene.receive(1, back, 1000, 1500);
    REQUIRE(scene.run_until_done(next));
  }
  CHECK(scene.engine(1).inspector().audit().unexpected_bytes <= kBudget);
  for (Tag i = 0; i < 300; ++i) {
    Act& next = scene.receive(1, back, i, 2000);
    REQUIRE(scene.run_until_done(next));
    CHECK(Scene::holds(next, i, 2000));
  }
  REQUIRE(scene.run_until_done(*sends.back()));
}

TEST_CASE("messages longer than the allowance that comes back at once are announced in turn") {
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = 128 * 1024;  // of which half is an eager message
  });
  const auto [there, back] = scene.couple(0, 1);
  std::vector<Act*> sends;
  for (Tag i = 0; i < 60; ++i) sends.push_back(&scene.send(0, there, i, 30'000));
  scene.run_for(seconds(1));

  for (Tag i = 0; i < 60; ++i) {
    Act& receive = scene.receive(1, back, i, 30'000);
    REQUIRE(scene.run_until_done(receive));
    CHECK(Scene::holds(receive, i, 30'000));
  }
  REQUIRE(scene.run_until_done(*sends.back()));
}

TEST_CASE("while an allowance may be under way messages wait for it, and leave whole") {
  const std::size_t size = GENERATE(100u, 5000u);
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = 128 * 1024;
  });
  const auto [there, back] = scene.couple(0, 1);
  for (WireFaults* wire : {&scene.network().wire(0, 1), &scene.network().wire(1, 0)}) {
    wire->delay = milliseconds(10);
  }
  constexpr int kMessages = 1000;
  std::vector<Act*> receives;

  for (int i = 0; i < kMessages; ++i) receives.push_back(&scene.receive(1, back, 1, size));
  for (int i = 0; i < kMessages; ++i) scene.send(0, there, 1, size);

  REQUIRE(scene.run_until_done(*receives.back()));
  CHECK(scene.stats(0).held_back_sends > 0);
  CHECK(scene.stats(0).announced_sends == 0);
}

TEST_CASE("noise and forged packets are counted and dropped") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  std::vector<std::byte> heard;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.fate == Fate::kArrives && passing.from.host == 0) {
      heard.assign(passing.bytes.begin(), passing.bytes.end());
    }
  });
  Act& first = scene.receive_any(1);
  scene.send(0, there, 1, 500);
  REQUIRE(scene.run_until_done(first));
  scene.run_for(milliseconds(10));
  const std::uint64_t before = scene.stats(1).dropped_packets;
  Random random(5);

  constexpr std::uint64_t kPackets = 2000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    std::vector<std::byte> bytes = heard;
    bytes[8 + random.below(4)] ^= std::byte{1} << random.below(8);  // the proof
    if (i % 2 == 0) {
      bytes.resize(between(random, 1, 200));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    }
    scene.network().inject({0, Channel::kData}, {1, Channel::kData}, bytes, microseconds(i));
  }
  scene.run_for(milliseconds(100));

  CHECK(scene.stats(1).dropped_packets == before + kPackets);
  Act& second = scene.receive_any(1);
  scene.send(0, there, 2, 50000);
  REQUIRE(scene.run_until_done(second));
  CHECK(Scene::holds(second, 2, 50000));
}

// Returns a HELLO as host 0 would send it, but of a process that does not exist.
std::vector<std::byte> false_hello(std::uint64_t epoch, std::uint8_t host) {
  wire::Hello hello;
  hello.epoch = epoch;
  hello.reply_to = {static_cast<std::uint32_t>(epoch % 7), static_cast<std::uint32_t>(epoch)};
  hello.allowance = 65536;
  hello.eager_bytes = 65536;
  hello.credit = 100;
  hello.nic_count = 1;
  hello.nics[0] = {.command_packet_bytes = 1472,
                   .data_packet_bytes = 1472,
                   .mbps = 0,
                   .command = address_of({host, Channel::kCommand}),
                   .data = address_of({host, Channel::kData})};
  const std::size_t body = wire::encoded_bytes(hello);
  std::vector<std::byte> bytes(wire::kHeaderBytes + wire::kFrameHeadBytes + body);
  wire::PacketHeader header;
  header.type = wire::PacketType::kHello;
  header.length = static_cast<std::uint16_t>(bytes.size());
  wire::encode(header, bytes.data());
  wire::put_hello(bytes.data() + wire::kHeaderBytes, body);
  wire::encode(hello, bytes.data() + wire::kHeaderBytes + wire::kFrameHeadBytes);
  return bytes;
}

TEST_CASE("a HELLO flood takes bounded memory, and its answers no more bytes than it has") {
  Scene scene(3, [](NodePlan& plan) { plan.config.max_peers = 32; });
  std::uint64_t flooded = 0;
  std::uint64_t answered = 0;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.fate == Fate::kInjected) flooded += passing.bytes.size();
    if (passing.from.host == 1 && passing.to.host == 0) answered += passing.bytes.size();
  });

  for (std::uint64_t i = 0; i < 5000; ++i) {
    scene.network().inject({0, Channel::kCommand}, {1, Channel::kCommand}, false_hello(1000 + i, 0),
                           microseconds(20 * i));
  }
  scene.run_for(seconds(40));

  CHECK(answered <= flooded);
  CHECK(scene.stats(1).peers_connected <= 32);
  // an honest caller still connects
  const auto [there, back] = scene.couple(2, 1);
  Act& receive = scene.receive(1, back, 3, 100);
  scene.send(2, there, 3, 100);
  REQUIRE(scene.run_until_done(receive));
}

// Host 0 polls every 5 us, and each time finds packets of a long message from host 1.
struct Stream {
  Stream()
      : scene(3, [host = 0](NodePlan& plan) mutable {
          if (host++ == 0) plan.poll_interval = microseconds(5);
          plan.polls_once = true;
        }) {
    const auto couple = scene.couple(1, 0);
    scene.network().wire(1, 0).ns_per_kib = 400;
    receive = &scene.receive(0, couple.back, 1, 8 << 20);
    scene.send(1, couple.there, 1, 8 << 20);
    scene.run_for(milliseconds(1));
  }

  Scene scene;
  Act* receive = nullptr;
};

TEST_CASE("a channel that was quiet is polled again soon, however busy the other one is") {
  Stream stream;
  Scene& scene = stream.scene;
  const PeerId there = scene.connect(2, 0);
  scene.run_for(milliseconds(1));
  Act& tiny = scene.receive(0, kAnyPeer, 7, 10);

  const Instant start = scene.now();
  scene.send(2, there, 7, 10);
  REQUIRE(scene.run_until_done(tiny));

  CHECK(scene.now() - start <= microseconds(5 + 32 + 10));  // the wire, the pause, two polls
  CHECK_FALSE(stream.receive->done());
}

TEST_CASE("an address is resolved while packets stream in") {
  Stream stream;
  Scene& scene = stream.scene;

  Act& receive = scene.receive_any(2);
  const Instant start = scene.now();
  scene.send(0, scene.connect(0, 2), 7, 5000);
  REQUIRE(scene.run_until_done(receive));

  // Three trips on the wire, the pause of the command channel, two resolutions, each seen at a
  // poll.
  CHECK(scene.now() - start <= microseconds(15 + 32 + 30));
  CHECK_FALSE(stream.receive->done());
}

}  // namespace
}  // namespace pullman::sim
