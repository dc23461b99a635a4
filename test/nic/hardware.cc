// The behaviour of hardware that no kernel socket shows, on the stand-in provider.
#include <rdma/fi_errno.h>

#include <catch2/catch.hpp>

#include "nic/contract.h"
#include "nic/factories.h"

namespace pullman::nic::contract {
namespace {

using Kind = PortEvent::Kind;

std::vector<Packet> packets_to_post(std::size_t count, std::size_t bytes = 100) {
  std::vector<Packet> packets;
  for (unsigned i = 0; i < count; ++i) packets.push_back(make_packet(bytes, i));
  return packets;
}

TEMPLATE_LIST_TEST_CASE("a resolution that takes long is waited for", "", Standins) {
  TestType factory;
  Bench bench(factory);
  factory.orders().resolve_reads = 50;

  bench.here().resolve(bench.there().address(), 3);
  PortEvent event;
  CHECK(bench.here().poll_events({&event, 1}) == 0);
  const auto events = bench.events(1);

  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::kResolved);
}

TEMPLATE_LIST_TEST_CASE("closing waits for resolutions that take long", "", Standins) {
  TestType factory;
  Bench bench(factory);
  factory.orders().resolve_reads = 50;

  bench.here().resolve(bench.there().address(), 3);
  bench.here().resolve(factory.unresolvable(), 4);
  bench.close_here();
}

TEMPLATE_LIST_TEST_CASE("link events are reported", "", Standins) {
  TestType factory;
  Bench bench(factory);

  factory.controls.set_link(false);
  factory.controls.set_link(true);

  const auto events = bench.events(2);
  REQUIRE(events.size() == 2);
  CHECK(events[0].kind == Kind::kLinkDown);
  CHECK(events[1].kind == Kind::kLinkUp);
}

TEMPLATE_LIST_TEST_CASE("credits are never overrun", "", Standins) {
  TestType factory;
  Bench bench(factory, {.send_packets = 8}, {});
  factory.orders().hold_sends = true;

  CHECK(bench.offer(packets_to_post(20)) == 8);
  CHECK(bench.offer(packets_to_post(20)) == 0);
  factory.orders().hold_sends = false;
  CHECK(bench.receive(8).size() == 8);
  CHECK(bench.offer(packets_to_post(3)) == 3);

  CHECK(factory.tallies().max_sends == 8);
}

TEMPLATE_LIST_TEST_CASE("a port closes with sends that have not completed", "", Standins) {
  TestType factory;
  Bench bench(factory);
  factory.orders().hold_sends = true;

  CHECK(bench.offer(packets_to_post(5)) == 5);
  bench.here().forget(bench.to());
  bench.close_here();
}

TEMPLATE_LIST_TEST_CASE("a destination forgotten during a send is removed after the send", "",
                        Standins) {
  TestType factory;
  Bench bench(factory);
  factory.orders().hold_sends = true;

  bench.send(make_packet(100, 1));
  bench.here().forget(bench.to());
  bench.events(0);
  CHECK(factory.tallies().removals == 0);
  factory.orders().hold_sends = false;
  CHECK(bench.receive(1).size() == 1);
  bench.events(0);

  CHECK(factory.tallies().removals == 1);
}

TEMPLATE_LIST_TEST_CASE("completions are not read while credits last", "", Standins) {
  TestType factory;
  Bench bench(factory, {.send_packets = 64}, {});
  const auto before = factory.tallies().send_queue_reads;

  for (unsigned i = 0; i < 48; ++i) bench.send(make_packet(64, i));

  CHECK(factory.tallies().send_queue_reads == before);
  CHECK(bench.receive(48).size() == 48);
}

TEMPLATE_LIST_TEST_CASE("a send that the device refuses for now is retried", "", Standins) {
  TestType factory;
  Bench bench(factory);
  factory.orders().refuse_sends = 3;

  bench.send(packets_to_post(10));

  CHECK(bench.receive(10) == packets_to_post(10));
  CHECK(bench.nothing_arrives());
  CHECK(bench.here().counters().sent == 10);
}

TEMPLATE_LIST_TEST_CASE("a send that fails gives its credit back", "", Standins) {
  TestType factory;
  Bench bench(factory, {.send_packets = 8}, {});

  factory.orders().fail_sends = 40;
  bench.send(packets_to_post(40));
  bench.send(packets_to_post(30));

  CHECK(bench.receive(30) == packets_to_post(30));
  CHECK(bench.here().counters().send_errors == 40);
}

TEMPLATE_LIST_TEST_CASE("an errored completion gives its buffer back", "", Standins) {
  TestType factory;
  Bench bench(factory, {}, {.receive_packets = 8});

  for (unsigned round = 0; round < 10; ++round) {
    factory.orders().fail_receives = 7;
    bench.send(packets_to_post(8));
    REQUIRE(bench.receive(1) == only(make_packet(100, 7)));
  }

  CHECK(bench.there().counters().receive_errors == 70);
  CHECK(factory.tallies().receives_dropped == 0);
}

TEMPLATE_LIST_TEST_CASE("errored completions are counted by the class of their error", "",
                        Standins) {
  TestType factory;
  Bench bench(factory);
  const auto [error, kind] = GENERATE(
      std::pair(FI_ETIMEDOUT, ErrorClass::kTimeout), std::pair(FI_EIO, ErrorClass::kDevice),
      std::pair(FI_ECRC, ErrorClass::kDevice), std::pair(FI_ECONNREFUSED, ErrorClass::kRemote),
      std::pair(FI_EINVAL, ErrorClass::kLocal));
  factory.orders().error = error;

  factory.orders().fail_sends = 3;
  bench.send(packets_to_post(4));
  REQUIRE(bench.receive(1) == only(make_packet(100, 3)));
  factory.orders().fail_receives = 2;
  bench.send(packets_to_post(3));
  REQUIRE(bench.receive(1) == only(make_packet(100, 2)));
  bench.events(0);

  bench.here().send({});
  CHECK(bench.there().counters().errors.of(kind).times == 2);
  CHECK(bench.there().counters().errors.of(kind).last == error);
  CHECK(bench.there().counters().errors.seen() == ErrorCounts::bit(kind));
}

TEMPLATE_LIST_TEST_CASE(
    "an endpoint that flushes what was posted is unusable, which is reported once", "", Standins) {
  TestType factory;
  Bench bench(factory, {.send_packets = 8}, {.receive_packets = 8});
  factory.orders().error = FI_ECANCELED;
  const bool sends = GENERATE(true, false);

  (sends ? factory.orders().fail_sends : factory.orders().fail_receives) = 8;
  bench.send(packets_to_post(8));
  Port& flushed = sends ? bench.here() : bench.there();
  CHECK(bench.nothing_arrives());
  if (sends) bench.offer(packets_to_post(1));

  std::array<PortEvent, 4> events;
  const std::size_t count = flushed.poll_events(events);
  REQUIRE(count == 1);
  CHECK(events[0].kind == Kind::kFailed);
  CHECK(flushed.counters().errors.of(ErrorClass::kFlushed).times > 0);
  CHECK(flushed.poll_events(events) == 0);
  if (sends) CHECK(bench.offer(packets_to_post(1)) == 0);
}

TEMPLATE_LIST_TEST_CASE("an endpoint that is unusable stays so, whatever else fails", "",
                        Standins) {
  TestType factory;
  Bench bench(factory, {.send_packets = 8}, {});

  for (const int error : {FI_ECANCELED, FI_EIO}) {
    factory.orders().error = error;
    factory.orders().fail_sends = 4;
    CHECK(bench.offer(packets_to_post(4)) == 4);
    CHECK(bench.nothing_arrives());
  }
  CHECK(bench.offer(packets_to_post(1)) == 0);

  std::array<PortEvent, 4> events;
  REQUIRE(bench.here().poll_events(events) == 1);
  CHECK(events[0].kind == Kind::kFailed);
}

TEMPLATE_LIST_TEST_CASE("a truncated completion gives its buffer back", "", Standins) {
  TestType factory;
  Bench bench(factory, {}, {.receive_packets = 8});

  for (unsigned round = 0; round < 10; ++round) {
    factory.orders().truncate_receives = 7;
    bench.send(packets_to_post(8));
    REQUIRE(bench.receive(1) == only(make_packet(100, 7)));
  }

  CHECK(bench.there().counters().receive_truncated == 70);
  CHECK(factory.tallies().receives_dropped == 0);
}

TEMPLATE_LIST_TEST_CASE("a ring full of bad packets does not stop the port", "", Standins) {
  TestType factory;
  Bench bench(factory, {}, {.receive_packets = 8});
  REQUIRE(bench.there().limits().receive_packets == 8);

  factory.orders().fail_receives = 4;
  factory.orders().truncate_receives = 4;
  bench.send(packets_to_post(8));
  CHECK(bench.nothing_arrives());
  bench.send(packets_to_post(8));

  CHECK(bench.receive(8) == packets_to_post(8));
}

TEMPLATE_LIST_TEST_CASE("a completion queue smaller than asked for limits the packets posted", "",
                        Standins) {
  TestType factory;
  factory.orders().completion_queue_limit = 10;
  Bench bench(factory, {.send_packets = 64}, {.receive_packets = 64});

  CHECK(bench.there().limits().receive_packets == 10);
  for (unsigned round = 0; round < 20; ++round) {
    bench.send(packets_to_post(10));
    REQUIRE(bench.receive(10) == packets_to_post(10));
  }

  CHECK(factory.tallies().max_sends <= 10);
}

TEMPLATE_LIST_TEST_CASE("the device does not receive what it sends to itself", "", Standins) {
  TestType factory;
  Bench bench(factory);
  const Destination itself = bench.resolve(bench.here().address());
  const Packet packet = make_packet(100, 1);
  const Outgoing out{.head = packet, .payload = {}, .to = itself};

  CHECK(bench.here().send({&out, 1}) == 1);

  Incoming in;
  CHECK(bench.nothing_arrives());
  CHECK(bench.here().receive({&in, 1}) == 0);
}

}  // namespace
}  // namespace pullman::nic::contract
