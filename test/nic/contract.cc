// The contract that every driver keeps.
#include "nic/contract.h"

#include <catch2/catch.hpp>

#include "nic/factories.h"

namespace pullman::nic::contract {
namespace {

using Kind = PortEvent::Kind;

TEMPLATE_LIST_TEST_CASE("an address resolves with exactly one event", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  bench.here().resolve(bench.there().address(), 99);

  const auto events = bench.events(1);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::kResolved);
  CHECK(events[0].cookie == 99);
}

TEMPLATE_LIST_TEST_CASE("addresses resolved together have an event each", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  for (std::uint64_t cookie = 0; cookie < 20; ++cookie) {
    bench.here().resolve(bench.there().address(), cookie);
  }

  const auto events = bench.events(20);
  std::vector<int> seen(20, 0);
  for (const PortEvent& event : events) {
    CHECK(event.kind == Kind::kResolved);
    REQUIRE(event.cookie < 20);
    ++seen[event.cookie];
  }
  CHECK(seen == std::vector<int>(20, 1));
}

TEMPLATE_LIST_TEST_CASE("a resolution that fails has one event, and harms no other", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  bench.here().resolve(factory.unresolvable(), 1);
  bench.here().resolve(bench.there().address(), 2);

  const auto events = bench.events(2);
  REQUIRE(events.size() == 2);
  for (const PortEvent& event : events) {
    CHECK(event.kind == (event.cookie == 1 ? Kind::kResolveFailed : Kind::kResolved));
  }
  CHECK(events[0].cookie + events[1].cookie == 3);
}

TEMPLATE_LIST_TEST_CASE("a port closes while addresses are being resolved", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  bench.here().resolve(bench.there().address(), 1);
  bench.here().resolve(factory.unresolvable(), 2);

  bench.close_here();
}

TEMPLATE_LIST_TEST_CASE("a destination may be forgotten right after a send to it", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  bench.send(make_packet(100, 1));
  bench.here().forget(bench.to());
  bench.events(0);

  CHECK(bench.receive(1) == only(make_packet(100, 1)));
  bench.resolve(bench.there().address());
}

TEMPLATE_LIST_TEST_CASE("ports have addresses of their own", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  CHECK_FALSE(bench.here().address() == bench.there().address());
  CHECK(port_of(bench.here().address()) != 0);
}

TEMPLATE_LIST_TEST_CASE("with nothing sent nothing is received", "", Drivers) {
  TestType factory;
  Bench bench(factory);

  CHECK(bench.nothing_arrives());
  CHECK(bench.there().counters().received == 0);
}

TEMPLATE_LIST_TEST_CASE("packets of every size arrive whole", "", Drivers) {
  TestType factory;
  Bench bench(factory);
  const std::size_t largest = bench.there().limits().packet_bytes;
  REQUIRE(largest == bench.here().limits().packet_bytes);

  for (std::size_t size = 1; size <= largest;
       size = size < 200 || size + 61 > largest ? size + 1 : size + 61) {
    const Packet packet = make_packet(size, static_cast<unsigned>(size));
    bench.send(packet);
    const auto got = bench.receive(1);
    INFO("size " << size);
    REQUIRE(got == only(packet));
  }
  CHECK(bench.nothing_arrives());
}

TEMPLATE_LIST_TEST_CASE("a packet of two segments arrives as one, whatever their sizes", "",
                        Drivers) {
  TestType factory;
  Bench bench(factory);
  const Packet packet = make_packet(300, 5);
  const std::span<const std::byte> bytes(packet);

  for (const std::size_t head : {1, 24, 299, 300}) {
    const Outgoing out{.head = bytes.first(head), .payload = bytes.subspan(head), .to = bench.to()};
    REQUIRE(bench.here().send({&out, 1}) == 1);
    CHECK(bench.receive(1) == only(packet));
  }
}

TEMPLATE_LIST_TEST_CASE("the caller may change its bytes after the call", "", Drivers) {
  TestType factory;
  Bench bench(factory);
  Packet packet = make_packet(200, 1);
  const Outgoing out{.head = packet, .payload = {}, .to = bench.to()};

  REQUIRE(bench.here().send({&out, 1}) == 1);
  packet.assign(packet.size(), std::byte{0xEE});

  CHECK(bench.receive(1) == only(make_packet(200, 1)));
}

TEMPLATE_LIST_TEST_CASE("a batch larger than the queue is taken in parts, in order", "", Roomy) {
  TestType factory;
  Bench bench(factory, {.send_packets = 8}, {.receive_packets = 256});
  std::vector<Packet> packets;
  for (unsigned i = 0; i < 64; ++i) packets.push_back(make_packet(100, i));

  const std::size_t at_first = bench.offer(packets);
  bench.send(std::vector<Packet>(packets.begin() + static_cast<long>(at_first), packets.end()));

  if (factory.queue_fills()) {
    CHECK(at_first == 8);
    CHECK(bench.here().counters().send_refused > 0);
  }
  CHECK(bench.receive(64) == packets);
  CHECK(bench.nothing_arrives());
  CHECK(bench.here().counters().sent == 64);
  CHECK(bench.there().counters().received == 64);
}

TEMPLATE_LIST_TEST_CASE("buffers given back receive again, many times around the ring", "", Roomy) {
  TestType factory;
  Bench bench(factory, {}, {.receive_packets = 16});

  for (unsigned round = 0; round < 60; ++round) {
    std::vector<Packet> packets;
    for (unsigned i = 0; i < 12; ++i) packets.push_back(make_packet(64 + i, round * 12 + i));
    bench.send(packets);
    INFO("round " << round);
    REQUIRE(bench.receive(12) == packets);
  }
}

TEMPLATE_LIST_TEST_CASE("lent bytes stay unchanged while other packets come and go", "", Drivers) {
  TestType factory;
  Bench bench(factory, {}, {.receive_packets = 16});
  bench.send({make_packet(80, 1), make_packet(80, 2)});
  const auto lent = bench.borrow(2);
  REQUIRE(lent.size() == 2);

  const auto pass = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      bench.send(make_packet(80, 100 + i));
      REQUIRE(bench.receive(1) == only(make_packet(80, 100 + i)));
    }
  };
  const auto holds = [&](unsigned i) {
    return Packet(lent[i].bytes.begin(), lent[i].bytes.end()) == make_packet(80, 1 + i);
  };

  pass(100);
  CHECK(holds(0));
  CHECK(holds(1));
  bench.there().give_back(std::span(lent).first(1));  // also of packets that arrived together
  pass(100);
  CHECK(holds(1));
  bench.there().give_back(std::span(lent).subspan(1));
  pass(1);
}

TEMPLATE_LIST_TEST_CASE("datagrams longer than a packet are dropped and counted", "", Roomy) {
  TestType factory;
  Bench bench(factory, {}, {.packet_bytes = 800, .receive_packets = 16});
  REQUIRE(bench.there().limits().packet_bytes == 800);

  for (unsigned round = 0; round < 20; ++round) {  // more than there are buffers
    bench.send({make_packet(801, 1), make_packet(802, 2), make_packet(1400, 3)});
    bench.send(make_packet(800, round));
    REQUIRE(bench.receive(1) == only(make_packet(800, round)));
  }

  CHECK(bench.nothing_arrives());
  CHECK(bench.there().counters().receive_truncated == 60);
  CHECK(bench.there().counters().received == 20);
}

TEMPLATE_LIST_TEST_CASE("a port holds as many unread packets as it says", "", Drivers) {
  TestType factory;
  Bench bench(factory, {.send_packets = 512}, {.receive_packets = 64});
  const std::size_t held = std::min<std::size_t>(bench.there().limits().receive_packets, 256);
  REQUIRE(held > 0);
  const Packet packet = make_packet(bench.there().limits().packet_bytes, 3);

  bench.send(std::vector<Packet>(held, packet));

  CHECK(bench.receive(held) == std::vector<Packet>(held, packet));
}

TEMPLATE_LIST_TEST_CASE("a packet size beyond the device's is refused with a sentence", "",
                        Devices) {
  TestType factory;

  CHECK_THROWS_WITH(factory.open({.packet_bytes = factory.device().packet_bytes + 1}),
                    Catch::Contains("carries packets of"));
}

TEMPLATE_LIST_TEST_CASE("a port number that is taken is refused with a sentence", "", Devices) {
  TestType factory;
  const auto first = factory.open({});
  const std::uint16_t taken = port_of(first->address());

  CHECK_THROWS_WITH(factory.open({.port = taken}), Catch::Contains("in use"));
}

}  // namespace
}  // namespace pullman::nic::contract
