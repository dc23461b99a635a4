// Kernel sockets only: bursts, and the errors of a real network.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>

#include "nic/contract.h"
#include "nic/drivers.h"
#include "nic/factories.h"
#include "nic/udp/udp_port.h"

namespace pullman::nic::contract {
namespace {

using Kind = PortEvent::Kind;
using Bursting = std::tuple<Kernel, KernelIpv6>;

std::vector<Packet> packets_of(std::size_t count, std::size_t bytes, unsigned seed = 0) {
  std::vector<Packet> packets;
  for (unsigned i = 0; i < count; ++i) packets.push_back(make_packet(bytes, seed + i));
  return packets;
}

std::vector<Packet> operator+(std::vector<Packet> left, const std::vector<Packet>& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// Packets have arrived in numbers before, so the port receives bursts.
void warm_up(Bench& bench) {
  bench.send(packets_of(2, 50));
  std::array<Incoming, 2> both;
  REQUIRE(bench.there().receive(both) == 2);
  bench.there().give_back(both);
}

int socket_of(const Port& port) {
  return dynamic_cast<const udp::UdpPort&>(port).descriptor();
}

std::size_t open_files() {
  using std::filesystem::directory_iterator;
  return static_cast<std::size_t>(
      std::distance(directory_iterator("/proc/self/fd"), directory_iterator()));
}

// Returns the address of a port that is closed.
Address deserted(PortFactory& factory) {
  return factory.open({})->address();
}

// Sends one packet after the other until it has been counted, for a limited time.
template <typename Counted>
bool counts(PortFactory& factory, Port& port, const Outgoing& packet, Counted counted) {
  for (int i = 0; i < 1000 && !counted(port.counters()); ++i) {
    port.send({&packet, 1});
    factory.pass_time();
    Incoming in;
    port.receive({&in, 1});  // either call may return errors
  }
  return counted(port.counters());
}

TEMPLATE_LIST_TEST_CASE("packets of one size leave and arrive as one burst", "", Bursting) {
  TestType factory;
  Bench bench(factory);
  warm_up(bench);
  const auto packets = packets_of(40, 1400);

  bench.send(packets);

  CHECK(bench.receive(40) == packets);
  CHECK(bench.here().counters().bursts_sent == 2);
  CHECK(bench.there().counters().bursts_received == 1);
  CHECK(bench.there().counters().received == 42);
}

// The bytes copied together for one call are limited, which long packets reach.
TEMPLATE_LIST_TEST_CASE("long packets that exceed one call's limit leave in several calls", "",
                        Bursting) {
  TestType factory;
  Bench bench(factory, {.packet_bytes = 9000}, {.packet_bytes = 9000});
  for (unsigned round = 0; round < 5; ++round) {
    const auto packets = packets_of(60, 9000, 100 * round);
    bench.send(packets);
    CHECK(bench.receive(60) == packets);
  }
}

TEMPLATE_LIST_TEST_CASE("after many single packets the port receives packets one by one again", "",
                        Bursting) {
  TestType factory;
  Bench bench(factory);
  for (std::uint64_t round = 0; round < 3; ++round) {
    warm_up(bench);
    CHECK(bench.there().counters().bursts_received == round);
    bench.send(packets_of(3, 200));
    CHECK(bench.receive(3) == packets_of(3, 200));
    CHECK(bench.there().counters().bursts_received == round + 1);

    for (unsigned i = 0; i < 2000; ++i) {
      bench.send(make_packet(100, i));
      REQUIRE(bench.receive(1) == only(make_packet(100, i)));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("packets are received in bursts although only one was asked for", "",
                        Bursting) {
  TestType factory;
  Bench bench(factory);
  warm_up(bench);
  for (unsigned i = 0; i < 2000; ++i) {
    bench.send(packets_of(3, 200, i));
    std::array<Incoming, 8> some;
    REQUIRE(bench.there().receive(some, 1) == 3);
    bench.there().give_back(std::span(some).first(3));
    REQUIRE(bench.there().receive(some, 1) == 0);
  }
  CHECK(bench.there().counters().bursts_received == 2000);
}

TEMPLATE_LIST_TEST_CASE(
    "a short packet in a burst with a long one is received with it, though one was asked for", "",
    Bursting) {
  TestType factory;
  Bench bench(factory);
  const auto receive = [&] {
    std::array<Incoming, 8> some;
    for (int i = 0; i < 1000; ++i) {
      const std::size_t got = bench.there().receive(some, 1);
      bench.there().give_back(std::span(some).first(got));
      if (got != 0) return got;
      factory.pass_time();
    }
    return std::size_t{0};
  };
  const std::size_t second = GENERATE(1000, 50);
  const auto burst = packets_of(1, 1000) + packets_of(1, second, 1);
  bench.send(burst);
  REQUIRE(receive() == 1);
  REQUIRE(receive() == 1);

  bench.send(burst);
  CHECK(receive() == 2);
}

TEMPLATE_LIST_TEST_CASE("a shorter packet ends its burst, a longer one begins another", "",
                        Bursting) {
  TestType factory;
  Bench bench(factory);
  const auto packets = packets_of(5, 1000) + packets_of(1, 999, 5) + packets_of(3, 1000, 6) +
                       packets_of(1, 1001, 9) + packets_of(1, 7, 10) + packets_of(1, 8, 11);

  bench.send(packets);

  CHECK(bench.receive(packets.size()) == packets);
  CHECK(bench.here().counters().bursts_sent == 3);
}

TEMPLATE_LIST_TEST_CASE("bursts end where a datagram would be too long", "", Bursting) {
  TestType factory;
  Bench bench(factory);
  const auto packets = packets_of(64, 1472) + packets_of(5, 30000, 64) + packets_of(64, 1, 70);

  bench.send(packets);

  CHECK(bench.receive(packets.size()) == packets);
  CHECK(bench.here().counters().bursts_sent >= 5);
}

TEMPLATE_LIST_TEST_CASE("a burst is to one destination", "", Bursting) {
  TestType factory;
  Bench bench(factory);
  const Destination other = bench.resolve(bench.here().address());
  const auto packets = packets_of(6, 100);
  std::vector<Outgoing> batch;
  for (std::size_t i = 0; i < 6; ++i) {
    batch.push_back({.head = packets[i], .payload = {}, .to = i < 3 ? bench.to() : other});
  }

  CHECK(bench.here().send(batch) == 6);

  CHECK(bench.receive(3) == packets_of(3, 100));
  CHECK(bench.nothing_arrives());
  std::vector<Incoming> own(8);
  REQUIRE(bench.here().receive(own) == 3);
  CHECK(Packet(own[2].bytes.begin(), own[2].bytes.end()) == packets[5]);
  bench.here().give_back({own.data(), 3});
}

TEST_CASE("without offloads each packet travels alone") {
  KernelPlain factory;
  Bench bench(factory);

  bench.send(packets_of(40, 1400));

  CHECK(bench.receive(40) == packets_of(40, 1400));
  CHECK(bench.here().counters().bursts_sent == 0);
  CHECK(bench.there().counters().bursts_received == 0);
}

TEST_CASE("a burst reaches a socket that knows none, and packets one that knows them") {
  Kernel factory;
  for (const bool sends : {true, false}) {
    const PortOptions with{.offloads = true};
    const PortOptions without{.offloads = false};
    Bench bench(factory, sends ? with : without, sends ? without : with);

    bench.send(packets_of(40, 1400));

    CHECK(bench.receive(40) == packets_of(40, 1400));
    CHECK(bench.here().counters().bursts_sent == (sends ? 1 : 0));
  }
}

TEST_CASE("a burst is delivered in parts, and its packets are given back in any order") {
  Kernel factory;
  Bench bench(factory);
  warm_up(bench);

  for (unsigned round = 0; round < 200; ++round) {  // more rounds than buffers
    bench.send(packets_of(10, 500, round));
    auto lent = bench.borrow(3);
    const auto rest = bench.borrow(7);
    REQUIRE(lent.size() + rest.size() == 10);
    std::reverse(lent.begin(), lent.end());
    bench.there().give_back(rest);
    CHECK(Packet(lent[2].bytes.begin(), lent[2].bytes.end()) == make_packet(500, round));
    bench.there().give_back(lent);
  }
}

TEST_CASE("bursts of packets that are too long are dropped, and each packet counted") {
  Kernel factory;
  Bench bench(factory, {}, {.packet_bytes = 800});
  warm_up(bench);

  for (unsigned round = 0; round < 100; ++round) bench.send(packets_of(10, 801));
  bench.send(packets_of(4, 800));

  CHECK(bench.receive(4) == packets_of(4, 800));
  CHECK(bench.there().counters().receive_truncated == 1000);
}

TEST_CASE("when a burst is refused, packets leave one by one from then on") {
  Kernel factory;
  Bench bench(factory);
  const int no_checksums = 1;  // for which the kernel refuses bursts
  REQUIRE(setsockopt(socket_of(bench.here()), SOL_SOCKET, SO_NO_CHECK, &no_checksums,
                     sizeof no_checksums) == 0);

  bench.send(packets_of(40, 1400));
  CHECK(bench.receive(40) == packets_of(40, 1400));
  bench.send(packets_of(40, 1400));

  CHECK(bench.receive(40) == packets_of(40, 1400));
  CHECK(bench.here().counters().offload_refused == 1);
  CHECK(bench.here().counters().bursts_sent == 0);
  CHECK(bench.here().counters().send_errors == 0);
  CHECK(bench.nothing_arrives());
}

TEMPLATE_LIST_TEST_CASE("packets to a closed port are refused by ICMP, and counted", "", Kernels) {
  TestType factory;
  Bench bench(factory);
  const Packet packet = make_packet(100, 1);
  const Outgoing out{.head = packet, .payload = {}, .to = bench.resolve(deserted(factory))};

  CHECK(counts(factory, bench.here(), out, [](const PortCounters& c) { return c.returned > 2; }));

  const ErrorCounts& errors = bench.here().counters().errors;
  CHECK(errors.of(ErrorClass::kRemote).times == bench.here().counters().returned);
  CHECK(errors.of(ErrorClass::kRemote).last == ECONNREFUSED);
  CHECK(errors.seen() == ErrorCounts::bit(ErrorClass::kRemote));
}

TEMPLATE_LIST_TEST_CASE("a closed port is reported for each of its destinations", "", Kernels) {
  TestType factory;
  Bench bench(factory);
  const Packet packet = make_packet(100, 1);
  const Address nobody = deserted(factory);
  const Destination first = bench.resolve(nobody);
  const Destination second = bench.resolve(nobody);
  const Destination forgotten = bench.resolve(nobody);
  bench.here().forget(forgotten);
  const Outgoing out{.head = packet, .payload = {}, .to = first};

  REQUIRE(counts(factory, bench.here(), out, [](const PortCounters& c) { return c.returned > 9; }));

  std::array<PortEvent, 64> events;
  const std::size_t count = bench.here().poll_events(events);
  REQUIRE(count >= 2);
  CHECK(count <= 4);  // not once per message
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(events[i].kind == Kind::kRefused);
    CHECK(events[i].to == (i % 2 == 0 ? first : second));
  }
  CHECK(bench.here().poll_events(events) == 0);
}

TEMPLATE_LIST_TEST_CASE("an ICMP error of a lost packet does not discard another packet", "",
                        Kernels) {
  TestType factory;
  Bench bench(factory);
  const Packet packet = make_packet(100, 1);
  const Outgoing lost{.head = packet, .payload = {}, .to = bench.resolve(deserted(factory))};

  for (unsigned i = 0; i < 50; ++i) {
    bench.here().send({&lost, 1});
    bench.send(make_packet(200, i));
    bench.here().send({&lost, 1});
    bench.send(packets_of(3, 300, i));
    bench.here().send({&lost, 1});
    bench.send({make_packet(200, i), make_packet(300, i)});
    REQUIRE(bench.receive(6).size() == 6);
  }

  CHECK(bench.here().counters().send_errors == 0);
}

// sendmmsg() clears a socket's pending error: it returns the error if its first message meets it,
// and drops it otherwise.
TEMPLATE_LIST_TEST_CASE("a closed port is reported, whichever call is the next", "", Kernels) {
  TestType factory;
  Bench bench(factory);
  const std::array packets{make_packet(100, 1), make_packet(200, 2), make_packet(300, 3)};
  const Destination there = bench.resolve(bench.there().address());
  const Outgoing lost{.head = packets[0], .payload = {}, .to = bench.resolve(deserted(factory))};
  const Outgoing second{.head = packets[1], .payload = {}, .to = there};
  const Outgoing third{.head = packets[2], .payload = {}, .to = there};
  const bool in_the_same_call = GENERATE(false, true);
  CAPTURE(in_the_same_call);

  if (in_the_same_call) {
    REQUIRE(bench.here().send(std::array{lost, second, third}) == 3);
  } else {
    REQUIRE(bench.here().send({&lost, 1}) == 1);
    REQUIRE(bench.here().send(std::array{second, third}) == 2);
  }

  CHECK(bench.receive(2) == std::vector(packets.begin() + 1, packets.end()));
  PortEvent event;
  REQUIRE(bench.here().poll_events({&event, 1}) == 1);
  CHECK(event.kind == Kind::kRefused);
  CHECK(event.to == lost.to);
}

TEST_CASE("ICMP errors do not hide packets that have arrived") {
  Kernel factory;
  Bench bench(factory);
  const Packet packet = make_packet(100, 1);
  const Destination nobody = bench.resolve(deserted(factory));
  const Destination itself = bench.resolve(bench.here().address());

  for (int i = 0; i < 50; ++i) {
    const Outgoing arrives{.head = packet, .payload = {}, .to = itself};
    const Outgoing lost{.head = packet, .payload = {}, .to = nobody};
    REQUIRE(bench.here().send({&arrives, 1}) == 1);
    REQUIRE(bench.here().send({&lost, 1}) == 1);
    Incoming in;
    REQUIRE(bench.here().receive({&in, 1}) == 1);
    bench.here().give_back({&in, 1});
  }
}

TEST_CASE("a packet longer than the interface carries is lost and counted") {
  // On the IPv6 loopback headers leave less than the longest datagram.
  const auto driver = make_driver("udp", "");
  Device device = KernelIpv6().device();
  const std::size_t fits = device.packet_bytes;
  device.packet_bytes = 65507;
  const auto here = driver->open(device, {});
  const auto there = driver->open(device, {});
  here->resolve(there->address(), 1);
  PortEvent event;
  REQUIRE(here->poll_events({&event, 1}) == 1);
  const Packet packet = make_packet(fits + 1, 1);
  const Outgoing out{.head = packet, .payload = {}, .to = event.to};

  CHECK(here->send({&out, 1}) == 1);

  CHECK(here->counters().send_errors == 1);
  CHECK(here->counters().too_long == 1);
  CHECK(here->path_bytes(event.to) == fits);
}

TEST_CASE("a socket holds two bursts of each of 64 peers, if the system allows it") {
  constexpr int kMuch = 16 << 20;
  const int scratch = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool may = setsockopt(scratch, SOL_SOCKET, SO_RCVBUFFORCE, &kMuch, sizeof kMuch) == 0;
  close(scratch);
  if (!may) return;
  Device device = KernelIpv6().device();
  device.packet_bytes = 1472;

  const auto port = make_driver("udp", "")->open(device, {});

  CHECK(port->limits().receive_packets >= 64 * 2 * 44);
}

TEST_CASE("packets that overflow the socket's buffer are counted") {
  KernelTiny factory;
  Bench bench(factory);
  const std::size_t held = bench.there().limits().receive_packets;
  REQUIRE(held < 10);

  for (unsigned i = 0; i < 100; ++i) bench.send(make_packet(1400, i));

  const std::size_t arrived = bench.receive(100).size();
  CHECK(arrived < 100);
  CHECK(bench.there().counters().receive_overflows == 100 - arrived);
}

TEMPLATE_LIST_TEST_CASE("a peer that many sends in a row go to becomes the connected peer", "",
                        Bursting) {
  TestType factory;
  Bench bench(factory);
  const std::size_t before = open_files();

  for (unsigned i = 0; i < 200; ++i) {
    bench.send(make_packet(100, i));
    REQUIRE(bench.receive(1) == only(make_packet(100, i)));
  }

  CHECK(open_files() == before + 1);
  bench.send(packets_of(40, 1400));
  CHECK(bench.receive(40) == packets_of(40, 1400));
}

TEMPLATE_LIST_TEST_CASE(
    "a port that is watched wakes its watcher, and one that is not stays out of the epoll set", "",
    Kernels) {
  TestType factory;
  Bench bench(factory);
  const int fd = bench.there().wait_fd();
  const auto told = [&] {
    pollfd watched{fd, POLLIN, 0};
    return poll(&watched, 1, 0) == 1;
  };
  CHECK_FALSE(told());
  bench.send(make_packet(100, 1));
  CHECK(told());
  bench.there().unwatch();
  CHECK_FALSE(told());

  CHECK(bench.there().wait_fd() == fd);

  CHECK(told());  // it was there before
  CHECK(bench.receive(1) == only(make_packet(100, 1)));
  CHECK_FALSE(told());
}

TEMPLATE_LIST_TEST_CASE("beside a connected peer all other peers are still received", "",
                        Bursting) {
  TestType factory;
  Bench away(factory);  // here -> there
  const auto here = away.here().address();
  Bench other(factory);
  const Destination back = other.resolve(here);
  for (unsigned i = 0; i < 200; ++i) away.send(make_packet(100, i));
  REQUIRE(away.receive(200).size() == 200);

  for (unsigned i = 0; i < 200; ++i) {
    const Packet packet = make_packet(60, i);
    const Outgoing out{packet, {}, back};
    REQUIRE(other.here().send({&out, 1}) == 1);
  }

  std::size_t heard = 0;
  for (int turn = 0; turn < 1000 && heard < 200; ++turn) {
    std::array<Incoming, 64> in;
    const std::size_t got = away.here().receive(in);
    away.here().give_back(std::span(in).first(got));
    heard += got;
    factory.pass_time();
  }
  CHECK(heard == 200);
}

TEMPLATE_LIST_TEST_CASE(
    "the connected peer changes with the destination of sends, and may be forgotten", "",
    Bursting) {
  TestType factory;
  Bench bench(factory);
  const auto other = factory.open({});
  const Destination second = bench.resolve(other->address());
  const auto send_second = [&](const Packet& packet) {
    const Outgoing out{packet, {}, second};
    REQUIRE(bench.here().send({&out, 1}) == 1);
  };

  for (unsigned i = 0; i < 100; ++i) bench.send(make_packet(100, i));
  for (unsigned i = 0; i < 100; ++i) send_second(make_packet(100, i));
  bench.send(make_packet(100, 100));
  CHECK(bench.receive(101) == packets_of(101, 100));
  bench.here().forget(second);
  bench.send(packets_of(3, 500));

  CHECK(bench.receive(3) == packets_of(3, 500));
  std::size_t heard = 0;
  for (int turn = 0; turn < 1000 && heard < 100; ++turn) {
    std::array<Incoming, 32> in;
    const std::size_t got = other->receive(in);
    other->give_back(std::span(in).first(got));
    heard += got;
    factory.pass_time();
  }
  CHECK(heard == 100);
}

TEST_CASE("the port of a connected peer is not shared, and is free after the close") {
  Kernel factory;
  Bench bench(factory);
  for (unsigned i = 0; i < 200; ++i) bench.send(make_packet(100, i));
  REQUIRE(bench.receive(200).size() == 200);
  const std::uint16_t port = port_of(bench.here().address());

  CHECK_THROWS_AS(factory.open({.port = port}), NicError);
  bench.close_here();
  CHECK_NOTHROW(factory.open({.port = port}));
}

TEST_CASE("an unusable socket is reported once") {
  Kernel factory;
  Bench bench(factory);
  close(socket_of(bench.here()));

  bench.offer(packets_of(2, 100));

  const auto events = bench.events(1);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::kFailed);
  CHECK(bench.here().counters().errors.seen() == ErrorCounts::bit(ErrorClass::kLocal));
  CHECK(bench.offer(packets_of(2, 100)) == 0);
}

TEST_CASE("the fabric driver over udp and the udp driver exchange packets") {
  Udp fabric;
  Kernel kernel;
  const auto one = fabric.open({.packet_bytes = 1400});
  const auto other = kernel.open({.packet_bytes = 1400});
  for (const auto& [from, to] : {std::pair(one.get(), other.get()), {other.get(), one.get()}}) {
    from->resolve(to->address(), 1);
    PortEvent event;
    while (from->poll_events({&event, 1}) == 0) kernel.pass_time();
    const auto packets = packets_of(30, 1400) + packets_of(30, 64, 30);
    std::vector<Outgoing> batch;
    for (const Packet& packet : packets) {
      batch.push_back({.head = packet, .payload = {}, .to = event.to});
    }
    REQUIRE(from->send(batch) == packets.size());

    for (const Packet& packet : packets) {
      Incoming in;
      for (int turn = 0; turn < 1000 && to->receive({&in, 1}) == 0; ++turn) kernel.pass_time();
      REQUIRE(Packet(in.bytes.begin(), in.bytes.end()) == packet);
      to->give_back({&in, 1});
    }
  }
}

}  // namespace
}  // namespace pullman::nic::contract
