// Scenarios: processes on one host, which share memory (wire.md 11). They are the specification.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/operations.h"
#include "sim/scene.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kAlways = 1'000'000;
constexpr std::uint64_t kHost = 77;

// Two processes on one host.
struct OneHost {
  explicit OneHost(const MemoryFaults& faults = {}, const Scene::Tweak& more = {})
      : scene(2, [&](NodePlan& plan) {
          plan.identity = kHost;
          plan.memory = faults;
          if (more) more(plan);
        }) {
    const auto couple = scene.couple(0, 1);
    there = couple.there;
    back = couple.back;
  }
  // Sends a message each way, after which both have joined.
  void share() {
    exchange(8);
    exchange(8);
    scene.run_for(milliseconds(1));
  }
  void exchange(std::size_t size) {
    Act& out = scene.receive(1, back, 1, size);
    scene.send(0, there, 1, size);
    REQUIRE(scene.run_until_done(out));
    CHECK(Scene::holds(out, 1, size));
    Act& answer = scene.receive(0, there, 2, size);
    scene.send(1, back, 2, size);
    REQUIRE(scene.run_until_done(answer));
    CHECK(Scene::holds(answer, 2, size));
  }
  bool shares(std::size_t host) {
    const auto views = scene.engine(host).inspector().rails(scene.now(), host == 0 ? there : back);
    return std::any_of(views.begin(), views.end(),
                       [](const RailView& view) { return view.memory; });
  }
  // The bytes that NICs have carried.
  std::uint64_t carried() { return scene.network().counters().bytes_sent; }

  Scene scene;
  PeerId there;
  PeerId back;
};

TEST_CASE("messages between processes on one host go through memory, and not by a NIC") {
  const std::size_t size = GENERATE(1u, 8u, 1000u, 2000u, 2100u, 70'000u, 1'000'000u);
  OneHost host;
  host.share();
  CHECK(host.shares(0));
  CHECK(host.shares(1));
  const std::uint64_t before = host.carried();

  for (int i = 0; i < 20; ++i) host.exchange(size);

  // What is left are the small probes that wake a process that sleeps.
  CHECK(host.carried() - before < 20 * 10 * 100);
  CHECK(host.scene.stats(0).memory_packets_sent >= 20);
}

TEST_CASE("connected processes on one host share memory once one of them has a message to send") {
  OneHost host;
  host.scene.run_for(seconds(1));
  CHECK_FALSE(host.shares(0));
  CHECK_FALSE(host.shares(1));

  host.scene.send(1, host.back, 1, 8);
  host.scene.run_for(milliseconds(1));

  CHECK(host.shares(0));
  CHECK(host.shares(1));
}

TEST_CASE("two hundred processes on one host share memory with those they send to, and no others") {
  constexpr std::size_t kProcesses = 200;
  constexpr std::size_t kKnown = 5;
  Scene scene(kProcesses, [](NodePlan& plan) { plan.identity = kHost; });
  std::vector<std::vector<PeerId>> known(kProcesses);
  for (std::size_t at = 0; at < kProcesses; ++at) {
    for (std::size_t next = 1; next <= kKnown; ++next) {
      known[at].push_back(scene.connect(at, (at + next) % kProcesses));
    }
  }
  const auto peer_state = [&](std::size_t at, PeerId peer) {
    return scene.engine(at).inspector().peer_state(peer);
  };
  for (std::size_t at = 0; at < kProcesses; ++at) {
    for (const PeerId peer : known[at]) {
      REQUIRE(scene.run_until([&] { return peer_state(at, peer) == PeerState::kConnected; }));
    }
  }

  for (const std::size_t size : {std::size_t{100}, std::size_t{100'000}}) {
    std::vector<Act*> receives;
    for (std::size_t at = 0; at < kProcesses; ++at) {
      receives.push_back(&scene.receive_any(at, 100'000));
      scene.send(at, known[at].front(), at + 1, size);
    }
    for (std::size_t at = 0; at < kProcesses; ++at) {
      REQUIRE(scene.run_until_done(*receives[at]));
      CHECK(Scene::holds(*receives[at], (at + kProcesses - 1) % kProcesses + 1, size));
    }
  }

  for (std::size_t at = 0; at < kProcesses; ++at) {
    for (const PeerId peer : known[at]) {
      const auto views = scene.engine(at).inspector().rails(scene.now(), peer);
      const bool shares =
          std::any_of(views.begin(), views.end(), [](const RailView& view) { return view.memory; });
      CHECK(shares == (peer == known[at].front()));
    }
  }
}

TEST_CASE("all messages that there is room for leave through memory in one turn") {
  OneHost host;
  host.share();
  const std::uint64_t before = host.scene.stats(0).memory_packets_sent;
  for (Tag tag = 1; tag <= 5; ++tag) host.scene.send(0, host.there, tag, 1000);

  host.scene.engine(0).progress(host.scene.node(0).local_now());

  CHECK(host.scene.stats(0).memory_packets_sent - before == 5);
}

TEST_CASE("memory is not shared where it is switched off, or cannot be had or joined") {
  MemoryFaults faults;
  Scene::Tweak tweak;
  SECTION("it is switched off") {
    tweak = [](NodePlan& plan) { plan.config.shared_memory = false; };
  }
  SECTION("two hosts") {
    tweak = [n = std::uint64_t{0}](NodePlan& plan) mutable { plan.identity = ++n; };
  }
  SECTION("no memory can be had") {
    faults.creating = kAlways;
  }
  SECTION("it cannot be joined") {
    faults.joining = kAlways;
  }
  OneHost host(faults, tweak);
  for (const std::size_t size : {8u, 100'000u, 8u, 100'000u}) host.exchange(size);
  CHECK_FALSE(host.shares(0));
  CHECK_FALSE(host.shares(1));
  CHECK(host.scene.stats(0).memory_packets_sent == 0);
}

TEST_CASE("two processes that send at the same time share one memory") {
  OneHost host;
  for (int round = 0; round < 3; ++round) {
    Act& there = host.scene.receive(1, host.back, 1, 100);
    Act& back = host.scene.receive(0, host.there, 1, 100);
    host.scene.send(0, host.there, 1, 100);
    host.scene.send(1, host.back, 1, 100);
    REQUIRE(host.scene.run_until([&] { return there.done() && back.done(); }));
    host.scene.run_for(milliseconds(2));
  }
  CHECK(host.shares(0));
  CHECK(host.shares(1));
}

TEST_CASE("messages of one sender match in the order sent, by whatever way they come") {
  MemoryFaults faults;
  faults.testing = GENERATE(0u, kAlways);
  OneHost host(faults);
  host.scene.network().wire(0, 1).delay = milliseconds(3);
  constexpr std::size_t kCount = 40;
  const auto size_of = [](std::size_t i) { return i % 3 == 0 ? 30'000 - i : 10 + i; };
  // The first leave by the NIC, and later ones overtake them in memory.
  for (std::size_t i = 0; i < kCount; ++i) {
    host.scene.send(0, host.there, 7, size_of(i));
    host.scene.run_for(milliseconds(1));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    Act& receive = host.scene.receive(1, host.back, 7, 30'000);
    REQUIRE(host.scene.run_until_done(receive));
    CHECK(Scene::holds(receive, 7, size_of(i)));
  }
  CHECK(host.shares(0));
}

TEST_CASE("when memory ends in the middle, its messages arrive by the NIC, once and in order") {
  const bool overwritten = GENERATE(true, false);
  MemoryFaults faults;
  if (!overwritten) faults.reading = kAlways;
  faults.testing = overwritten ? GENERATE(0u, kAlways) : 0;
  OneHost host(faults);
  host.share();
  REQUIRE(host.shares(0));
  constexpr std::size_t kCount = 60;
  const auto size_of = [](std::size_t i) { return i % 4 == 1 ? 50'000 + i : 100 + i; };
  std::vector<Act*> receives;
  for (std::size_t i = 0; i < kCount; ++i) {
    receives.push_back(&host.scene.receive(1, host.back, 7, 60'000));
  }
  std::vector<Act*> sends;
  for (std::size_t i = 0; i < kCount; ++i) {
    sends.push_back(&host.scene.send(0, host.there, 7, size_of(i)));
    if (i == kCount / 2 && overwritten) host.scene.node(0).corrupt_memory();
    if (i % 8 == 0) host.scene.run_for(milliseconds(1));
  }

  for (std::size_t i = 0; i < kCount; ++i) {
    REQUIRE(host.scene.run_until_done(*receives[i]));
    REQUIRE(host.scene.run_until_done(*sends[i]));
    CHECK(Scene::holds(*receives[i], 7, size_of(i)));
    CHECK(sends[i]->status() == Status::kOk);
  }
  CHECK_FALSE(host.shares(0));
  CHECK_FALSE(host.shares(1));
  host.exchange(100);
}

TEST_CASE("the death of a process on the host ends what is pending with it at once") {
  OneHost host;
  host.share();
  Act& receive = host.scene.receive(0, host.there, 5, 100);
  Act& send = host.scene.send(0, host.there, 5, 100'000);
  Act& last = host.scene.receive(0, host.there, 6, 100);
  host.scene.send(1, host.back, 6, 100);
  host.scene.node(1).end(true);

  REQUIRE(host.scene.run_until([&] { return receive.done() && send.done() && last.done(); },
                               milliseconds(20)));
  CHECK(receive.status() == Status::kPeerDied);
  CHECK(send.status() == Status::kPeerDied);
  CHECK(Scene::holds(last, 6, 100));  // it was sent before
  CHECK(host.scene.engine(0).inspector().peer_status(host.there) == Status::kPeerDied);
}

TEST_CASE("a process whose death the system does not tell is found dead when it is polled") {
  MemoryFaults faults;
  faults.polled = kAlways;
  OneHost host(faults);
  host.share();
  Act& receive = host.scene.receive(0, host.there, 5, 100);
  host.scene.node(1).end(true);

  REQUIRE(host.scene.run_until([&] { return receive.done(); }, milliseconds(300)));
  CHECK(receive.status() == Status::kPeerDied);
}

TEST_CASE("a process that dies amid a long message is found dead when its memory cannot be read") {
  MemoryFaults faults;
  faults.polled = kAlways;
  OneHost host(faults);
  host.share();
  Act& receive = host.scene.receive(0, host.there, 5, 60'000);
  host.scene.node(0).stall_until(host.scene.now() + milliseconds(2));
  host.scene.send(1, host.back, 5, 60'000);
  host.scene.run_for(milliseconds(1));
  host.scene.node(1).end(true);

  REQUIRE(host.scene.run_until([&] { return receive.done(); }, milliseconds(20)));
  CHECK(receive.status() == Status::kPeerDied);
}

TEST_CASE("a process that closes in good order is not taken for dead") {
  OneHost host;
  host.share();
  Act& last = host.scene.receive(0, host.there, 6, 5000);
  host.scene.send(1, host.back, 6, 5000);
  host.scene.begin_close(1);
  REQUIRE(host.scene.run_until([&] { return host.scene.engine(1).drained(); }));
  host.scene.node(1).end(false);
  REQUIRE(host.scene.run_until_done(last));
  CHECK(Scene::holds(last, 6, 5000));
  REQUIRE(host.scene.run_until(
      [&] { return host.scene.engine(0).inspector().peer_state(host.there) == PeerState::kGone; }));
  CHECK(host.scene.engine(0).inspector().peer_status(host.there) == Status::kPeerClosed);
}

TEST_CASE("what was sent before a process closed at once has arrived") {
  OneHost host;
  host.share();
  host.scene.node(0).stall_until(host.scene.now() + milliseconds(50));
  for (Tag tag = 1; tag <= 10; ++tag) host.scene.send(1, host.back, tag, 200);
  host.scene.run_for(milliseconds(1));
  host.scene.engine(1).close_abortively(host.scene.node(1).local_now());
  host.scene.node(1).end(false);
  for (Tag tag = 1; tag <= 10; ++tag) {
    Act& receive = host.scene.receive(0, host.there, tag, 200);
    REQUIRE(host.scene.run_until_done(receive));
    CHECK(Scene::holds(receive, tag, 200));
  }
}

TEST_CASE("a peer that does not read holds the sender back, and not for ever") {
  OneHost host;
  host.share();
  host.scene.node(1).stall_until(host.scene.now() + seconds(1));
  std::vector<Act*> sends;
  for (int i = 0; i < 2000; ++i) sends.push_back(&host.scene.send(0, host.there, 9, 1500));
  host.scene.run_for(milliseconds(500));
  CHECK_FALSE(sends.back()->done());
  for (int i = 0; i < 2000; ++i) {
    Act& receive = host.scene.receive(1, host.back, 9, 1500);
    REQUIRE(host.scene.run_until_done(receive));
    CHECK(Scene::holds(receive, 9, 1500));
  }
  REQUIRE(host.scene.run_until_done(*sends.back()));
  CHECK(host.shares(0));
}

TEST_CASE("puts and gets work through memory") {
  std::vector<std::byte> memory = bytes_of(1 << 20, 3);
  std::vector<std::byte> expected = memory;
  OneHost host;
  Doings does{host.scene};
  REQUIRE(host.scene.engine(1).remote_memory().add_region(5, memory, Access::kReadWrite));
  host.share();
  const std::size_t size = GENERATE(8u, 3000u, 300'000u);
  const auto bytes = bytes_of(size, 77);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 1001);

  Act& put = does.put(0, host.there, {5, 1001}, bytes);
  REQUIRE(host.scene.run_until_done(put));
  CHECK(memory == expected);
  Act& get = does.get(0, host.there, {5, 1001}, size);
  REQUIRE(host.scene.run_until_done(get));
  CHECK(get.bytes == bytes);
  CHECK(host.shares(0));
}

}  // namespace
}  // namespace pullman::sim
