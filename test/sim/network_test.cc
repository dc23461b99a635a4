// The simulated network itself: what it does to datagrams, and which misuse of ports it reports.
#include "sim/network.h"

#include <catch2/catch.hpp>

#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;

constexpr Endpoint kHere{0, Channel::kData};
constexpr Endpoint kThere{1, Channel::kData};

struct Pair {
  Findings findings;
  Network network{2, 1, findings};
  std::unique_ptr<nic::Port> here = network.open(kHere, {});
  std::unique_ptr<nic::Port> there = network.open(kThere, {});
  nic::Destination to = nic::kInvalidDestination;

  explicit Pair(PortPlan receiver = {}) {
    there.reset();
    there = network.open(kThere, receiver);
    here->resolve(address_of(kThere), 7);
    nic::PortEvent event;
    REQUIRE(here->poll_events({&event, 1}) == 1);
    REQUIRE(event.kind == nic::PortEvent::Kind::kResolved);
    REQUIRE(event.cookie == 7);
    to = event.to;
  }

  void send(std::uint8_t value) {
    const std::byte bytes[1] = {static_cast<std::byte>(value)};
    const nic::Outgoing packet{.head = bytes, .payload = {}, .to = to};
    REQUIRE(here->send({&packet, 1}) == 1);
  }

  std::vector<int> received() {
    std::vector<int> values;
    nic::Incoming batch[8];
    while (const std::size_t count = there->receive(batch)) {
      for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<int>(batch[i].bytes[0]));
      there->give_back({batch, count});
    }
    return values;
  }

  void run() {
    while (network.next_event() != kNever) network.advance(network.next_event());
  }
};

TEST_CASE("a datagram arrives after the wire's delay and not before") {
  Pair pair;
  pair.network.wire(0, 1).delay = microseconds(5);

  pair.send(42);
  pair.network.advance(Instant(microseconds(4)));
  CHECK(pair.received().empty());
  pair.network.advance(Instant(microseconds(5)));

  CHECK(pair.received() == std::vector{42});
}

TEST_CASE("jitter does not take a channel out of order") {
  Pair pair;
  pair.network.wire(0, 1).jitter = microseconds(100);

  for (int i = 0; i < 50; ++i) pair.send(static_cast<std::uint8_t>(i));
  pair.run();

  const std::vector<int> values = pair.received();
  CHECK(values.size() == 50);
  CHECK(std::is_sorted(values.begin(), values.end()));
}

TEST_CASE("a wire that is told to reorder takes a channel out of order") {
  Pair pair;
  pair.network.wire(0, 1).reorder = 300'000;
  pair.network.wire(0, 1).reorder_by = microseconds(50);

  for (int i = 0; i < 50; ++i) pair.send(static_cast<std::uint8_t>(i));
  pair.run();

  const std::vector<int> values = pair.received();
  CHECK(values.size() == 50);
  CHECK_FALSE(std::is_sorted(values.begin(), values.end()));
  CHECK(pair.network.counters().reordered > 0);
}

TEST_CASE("a partition stops one direction while it lasts") {
  Pair pair;
  pair.network.partitions().push_back(
      {.from = 0, .to = 1, .start = Instant(microseconds(10)), .end = Instant(microseconds(20))});

  pair.send(1);
  pair.network.advance(Instant(microseconds(10)));
  pair.send(2);
  pair.network.advance(Instant(microseconds(20)));
  pair.send(3);
  pair.run();

  CHECK(pair.received() == std::vector{1, 3});
  CHECK(pair.network.counters().lost == 1);
}

TEST_CASE("a port without a free buffer drops what arrives") {
  Pair pair(PortPlan{.receive_packets = 3});

  for (int i = 0; i < 5; ++i) pair.send(static_cast<std::uint8_t>(i));
  pair.run();

  CHECK(pair.received() == std::vector{0, 1, 2});
  CHECK(pair.network.counters().overflowed == 2);
}

TEST_CASE("a duplicated datagram arrives twice") {
  Pair pair;
  pair.network.wire(0, 1).duplicate = 1'000'000;

  pair.send(9);
  pair.run();

  CHECK(pair.received() == std::vector{9, 9});
}

TEST_CASE("a buffer given back twice is reported") {
  Pair pair;
  pair.send(1);
  pair.run();
  nic::Incoming incoming;
  REQUIRE(pair.there->receive({&incoming, 1}) == 1);

  pair.there->give_back({&incoming, 1});
  CHECK_FALSE(pair.findings.any());
  pair.there->give_back({&incoming, 1});

  CHECK(pair.findings.any());
}

TEST_CASE("a packet sent to a forgotten destination is reported") {
  Pair pair;
  pair.here->forget(pair.to);
  CHECK_FALSE(pair.findings.any());

  pair.send(1);

  CHECK(pair.findings.any());
}

TEST_CASE("an address that no port has is not resolved") {
  Pair pair;
  nic::Address nobody = address_of(kThere);
  nobody.bytes[0] = std::byte{99};

  pair.here->resolve(nobody, 8);

  nic::PortEvent event;
  REQUIRE(pair.here->poll_events({&event, 1}) == 1);
  CHECK(event.kind == nic::PortEvent::Kind::kResolveFailed);
}

TEST_CASE("equal seeds give equal runs, other seeds other ones") {
  const auto digest = [](std::uint64_t seed) {
    Findings findings;
    Network network(2, seed, findings);
    auto here = network.open(kHere, {});
    auto there = network.open(kThere, {});
    network.wire(0, 1).loss = 300'000;
    here->resolve(address_of(kThere), 1);
    nic::PortEvent event;
    here->poll_events({&event, 1});
    const std::byte bytes[64] = {};
    const nic::Outgoing packet{.head = bytes, .payload = {}, .to = event.to};
    for (int i = 0; i < 100; ++i) here->send({&packet, 1});
    return network.digest();
  };

  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
}

}  // namespace
}  // namespace pullman::sim
