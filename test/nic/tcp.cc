// What only a driver on byte streams must do: find datagrams however the stream is cut, resist
// hostile streams, and keep one connection's trouble from others.
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "nic/contract.h"
#include "nic/factories.h"
#include "nic/tcp/framing.h"
#include "nic/tcp/tcp_port.h"

namespace pullman::nic::contract {
namespace {

std::size_t connections_of(const Port& port) {
  return dynamic_cast<const tcp::TcpPort&>(port).connection_table().connections();
}

// Returns the packet as it stands in a stream.
Packet framed(const Packet& packet) {
  const tcp::Length length = tcp::make_length(packet.size());
  Packet out(length.begin(), length.end());
  out.insert(out.end(), packet.begin(), packet.end());
  return out;
}

Packet preamble(std::uint16_t port = 9) {
  const tcp::Preamble bytes = tcp::make_preamble(port);
  return {bytes.begin(), bytes.end()};
}

Packet operator+(Packet left, const Packet& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// An attacker with a plain socket.
class Stranger {
 public:
  explicit Stranger(const Port& port) : socket_(::socket(family(port), SOCK_STREAM, 0)) {
    sockaddr_storage name;
    const socklen_t length = to_sockaddr(port.address(), name);
    REQUIRE(connect(socket_, reinterpret_cast<const sockaddr*>(&name), length) == 0);
  }
  Stranger(Stranger&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  ~Stranger() { hang_up(); }

  void say(std::span<const std::byte> bytes) {
    REQUIRE(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  void hang_up() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  bool was_hung_up_on() const {
    std::byte byte;
    const ssize_t got = recv(socket_, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  static int family(const Port& port) { return port.address().kind == 6 ? AF_INET6 : AF_INET; }
  int socket_;
};

// A port and the packets it has received.
struct Listening {
  explicit Listening(PortFactory& ports, const PortOptions& options = {})
      : factory(ports), port(ports.open(options)) {}

  // Receives until that many packets have come, or nothing more does.
  const std::vector<Packet>& hear(std::size_t count) {
    for (int quiet = 0; heard.size() < count && quiet < 2000;) quiet = turn() ? 0 : quiet + 1;
    for (int i = 0; i < 40; ++i) turn();
    return heard;
  }
  bool turn() {
    std::array<Incoming, 7> in;
    const std::size_t got = port->receive(in);
    for (std::size_t i = 0; i < got; ++i) {
      heard.emplace_back(in[i].bytes.begin(), in[i].bytes.end());
    }
    port->give_back(std::span(in).first(got));
    if (got == 0) factory.pass_time();
    return got != 0;
  }
  template <typename Condition>
  bool comes_to(Condition condition) {
    for (int i = 0; i < 20000 && !condition(); ++i) turn();
    return condition();
  }
  Destination resolve(const Address& address) {
    port->resolve(address, 1);
    PortEvent event;
    REQUIRE(port->poll_events({&event, 1}) == 1);
    REQUIRE(event.kind == PortEvent::Kind::kResolved);
    return event.to;
  }
  bool send(Destination to, const Packet& packet) {
    const Outgoing out{packet, {}, to};
    return port->send({&out, 1}) == 1;
  }

  PortFactory& factory;
  std::unique_ptr<Port> port;
  std::vector<Packet> heard;
};

TEST_CASE("a stream cut in two at any byte gives the same datagrams") {
  Tcp factory;
  Listening here(factory);
  const std::vector<Packet> packets = {make_packet(1, 1), make_packet(40, 2), make_packet(3, 3)};
  Packet stream = preamble();
  for (const Packet& packet : packets) stream = stream + framed(packet);

  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    Stranger stranger(*here.port);
    here.heard.clear();
    stranger.say(std::span(stream).first(cut));
    here.comes_to([&] { return connections_of(*here.port) > 0; });
    for (int i = 0; i < 4; ++i) here.turn();
    stranger.say(std::span(stream).subspan(cut));
    INFO("cut at " << cut);
    REQUIRE(here.hear(3) == packets);
    stranger.hang_up();
    REQUIRE(here.comes_to([&] { return connections_of(*here.port) == 0; }));
  }
  CHECK(here.port->counters().receive_errors == 0);
}

TEST_CASE("a stream that comes byte by byte gives its datagrams") {
  Tcp factory;
  Listening here(factory);
  Stranger stranger(*here.port);
  const std::vector<Packet> packets = {make_packet(300, 1), make_packet(1, 2)};

  for (const std::byte& byte : preamble() + framed(packets[0]) + framed(packets[1])) {
    stranger.say({&byte, 1});
    here.turn();
  }

  CHECK(here.hear(2) == packets);
}

TEST_CASE("datagrams of all lengths come whole and in order, however reads fall on them") {
  Tcp factory;
  Listening here(factory);
  Listening there(factory);
  const Destination to = here.resolve(there.port->address());
  std::mt19937 random(7);
  std::vector<Packet> packets;
  for (unsigned i = 0; i < 2000; ++i) {
    const std::size_t most = random() % 3 == 0 ? tcp::kMaxPacketBytes : 300;
    packets.push_back(make_packet(1 + random() % most, i));
  }

  for (const Packet& packet : packets) {
    for (int i = 0; i < 2000 && !here.send(to, packet); ++i) {
      there.turn();
      here.turn();
    }
  }
  there.comes_to([&] {
    here.turn();
    return there.heard.size() == packets.size();
  });

  CHECK(there.heard == packets);
  CHECK(here.port->counters().send_errors == 0);
}

TEST_CASE("more unfinished datagrams than buffers are all finished") {
  Tcp factory;
  Listening here(factory);
  std::vector<Stranger> strangers;
  const Packet packet = make_packet(20000, 1);
  const Packet stream = preamble() + framed(packet);
  for (int i = 0; i < 100; ++i) {
    strangers.emplace_back(*here.port).say(std::span(stream).first(15000));
  }
  here.hear(1);
  REQUIRE(here.heard.empty());
  REQUIRE(connections_of(*here.port) == 100);

  for (Stranger& stranger : strangers) stranger.say(std::span(stream).subspan(15000));

  CHECK(here.hear(100) == std::vector<Packet>(100, packet));
}

TEST_CASE("a stream that ends within a datagram delivers those before it") {
  Tcp factory;
  Listening here(factory);
  Stranger stranger(*here.port);
  const Packet packet = make_packet(100, 1);
  Packet stream = preamble() + framed(packet) + framed(packet);
  stream.resize(stream.size() - 50);

  stranger.say(stream);
  stranger.hang_up();

  CHECK(here.hear(2) == only(packet));
  CHECK(connections_of(*here.port) == 0);
}

TEST_CASE("a stream without our preamble is closed, and counted") {
  Tcp factory;
  Listening here(factory);
  Packet bad_version = preamble();
  bad_version[4] = std::byte{2};
  Packet bad_magic = preamble();
  bad_magic[0] = std::byte{'G'};
  std::uint64_t errors = 0;
  for (const Packet& start : {bad_version, bad_magic, preamble(0), make_packet(200, 3)}) {
    Stranger stranger(*here.port);
    stranger.say(start + framed(make_packet(10, 1)));

    CHECK(here.hear(1).empty());
    CHECK(stranger.was_hung_up_on());
    CHECK(here.port->counters().receive_errors == ++errors);
    CHECK(connections_of(*here.port) == 0);
  }
}

TEST_CASE("a length that no datagram may have ends the stream, and is counted") {
  Tcp factory;
  Listening here(factory);
  std::uint64_t errors = 0;
  for (const std::size_t length : {std::size_t{0}, tcp::kMaxPacketBytes + 1, std::size_t{65535}}) {
    const tcp::Length bad = tcp::make_length(length);
    Stranger stranger(*here.port);
    here.heard.clear();
    stranger.say(preamble() + framed(make_packet(10, 1)) + Packet(bad.begin(), bad.end()) +
                 make_packet(500, 2));

    CHECK(here.hear(2) == only(make_packet(10, 1)));
    CHECK(stranger.was_hung_up_on());
    CHECK(here.port->counters().receive_errors == ++errors);
  }
}

TEST_CASE("lent bytes stay valid after their connection has ended") {
  Tcp factory;
  Listening here(factory);
  Stranger stranger(*here.port);
  stranger.say(preamble() + framed(make_packet(100, 1)));
  Incoming in;
  for (int i = 0; i < 1000 && here.port->receive({&in, 1}) == 0; ++i) factory.pass_time();
  stranger.hang_up();
  REQUIRE(here.comes_to([&] { return connections_of(*here.port) == 0; }));

  CHECK(Packet(in.bytes.begin(), in.bytes.end()) == make_packet(100, 1));
  here.port->give_back({&in, 1});
}

TEST_CASE("of many connections that stay silent the oldest are closed, and others are served") {
  Tcp factory;
  Listening here(factory);
  std::vector<Stranger> silent;
  for (std::size_t i = 0; i < tcp::ConnectionTable::kMaxSilent + 40; ++i) {
    silent.emplace_back(*here.port);
    here.turn();
  }
  here.hear(1);
  CHECK(connections_of(*here.port) == tcp::ConnectionTable::kMaxSilent);
  CHECK(silent.front().was_hung_up_on());
  CHECK_FALSE(silent.back().was_hung_up_on());

  Stranger talker(*here.port);
  talker.say(preamble() + framed(make_packet(100, 1)));

  CHECK(here.hear(1) == only(make_packet(100, 1)));
}

// Sets the limit that leaves so many descriptors free.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit now{static_cast<rlim_t>(next + left), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("without descriptors new connections replace silent ones, or are refused") {
  Tcp factory;
  Listening here(factory);
  std::vector<Stranger> strangers;
  for (int i = 0; i < 40; ++i) strangers.emplace_back(*here.port);
  const auto readable = [&] {
    pollfd watched{here.port->wait_fd(), POLLIN, 0};
    return poll(&watched, 1, 0) == 1;
  };
  const FewDescriptors few(5);

  SECTION("replacing silent connections") {
    here.hear(1);
    CHECK(connections_of(*here.port) == 5);
    strangers.back().say(preamble() + framed(make_packet(50, 1)));
    CHECK(here.hear(1) == only(make_packet(50, 1)));
  }
  SECTION("among connections in use") {
    for (std::uint16_t i = 0; i < 40; ++i) {
      strangers[i].say(preamble(static_cast<std::uint16_t>(i + 1)));
      here.resolve(with_port(here.port->address(), static_cast<std::uint16_t>(i + 1)));
    }
    here.hear(1);
    CHECK(connections_of(*here.port) >= 1);
    CHECK(connections_of(*here.port) <= 5);
  }
  CHECK_FALSE(readable());
}

// As where other processes take each descriptor that is freed, since the whole system lacks them.
TEST_CASE("one silent connection at most is closed for new ones if its descriptor does not help") {
  Tcp factory;
  Listening here(factory);
  std::vector<Stranger> silent;
  for (int i = 0; i < 4; ++i) silent.emplace_back(*here.port);
  REQUIRE(here.comes_to([&] { return connections_of(*here.port) == 4; }));
  std::vector<Stranger> more;
  for (int i = 0; i < 3; ++i) more.emplace_back(*here.port);
  const FewDescriptors none(-10);

  REQUIRE(here.comes_to([&] { return connections_of(*here.port) < 4; }));

  CHECK(connections_of(*here.port) == 3);
}

TEST_CASE("an answer takes the connection by which the caller came") {
  Tcp factory;
  Listening here(factory);
  Listening there(factory);
  here.send(here.resolve(there.port->address()), make_packet(50, 1));
  REQUIRE(there.hear(1) == only(make_packet(50, 1)));

  there.send(there.resolve(here.port->address()), make_packet(60, 2));

  CHECK(here.hear(1) == only(make_packet(60, 2)));
  CHECK(connections_of(*here.port) == 1);
  CHECK(connections_of(*there.port) == 1);
}

TEST_CASE("two ports that connect to each other at the same time lose nothing") {
  Tcp factory;
  Listening one(factory);
  Listening other(factory);
  const Destination to_other = one.resolve(other.port->address());
  const Destination to_one = other.resolve(one.port->address());
  std::vector<Packet> packets;
  for (unsigned i = 0; i < 50; ++i) packets.push_back(make_packet(100 + i, i));

  for (const Packet& packet : packets) {
    REQUIRE(one.send(to_other, packet));
    REQUIRE(other.send(to_one, packet));
    if (packet.size() % 10 == 0) one.turn();
    if (packet.size() % 15 == 0) other.turn();
  }

  CHECK(one.hear(50) == packets);
  CHECK(other.hear(50) == packets);
  CHECK(connections_of(*one.port) <= 2);
  CHECK(one.port->counters().send_errors + other.port->counters().send_errors == 0);
}

TEST_CASE("a port receives what it sends to itself") {
  Tcp factory;
  Listening here(factory);

  here.send(here.resolve(here.port->address()), make_packet(50, 1));

  CHECK(here.hear(1) == only(make_packet(50, 1)));
}

TEST_CASE("packets to a closed port are lost and counted until it is opened") {
  Tcp factory;
  Listening here(factory);
  const Address address = factory.open({})->address();
  const Destination to = here.resolve(address);
  for (int i = 0; i < 300; ++i) {
    REQUIRE(here.send(to, make_packet(50, 1)));
    here.turn();
  }
  CHECK(here.port->counters().send_errors > 250);
  CHECK(here.port->counters().errors.seen() == ErrorCounts::bit(ErrorClass::kRemote));
  CHECK(here.port->counters().errors.of(ErrorClass::kRemote).last == ECONNREFUSED);
  CHECK(connections_of(*here.port) <= 1);

  Listening there(factory, {.port = port_of(address)});

  CHECK(there.comes_to([&] {
    here.send(to, make_packet(50, 1));
    here.turn();
    return !there.heard.empty();
  }));
  CHECK(there.heard.front() == make_packet(50, 1));
}

TEST_CASE("a peer that restarts is reached by a new connection, from either side") {
  Tcp factory;
  Listening here(factory);
  auto there = std::make_unique<Listening>(factory);
  const std::uint16_t port = port_of(there->port->address());
  const Destination to = here.resolve(there->port->address());
  here.send(to, make_packet(50, 1));
  REQUIRE(there->hear(1).size() == 1);
  there.reset();

  there = std::make_unique<Listening>(factory, PortOptions{.port = port});
  SECTION("when it is sent to again") {
    CHECK(there->comes_to([&] {
      here.send(to, make_packet(60, 2));
      here.turn();
      return !there->heard.empty();
    }));
  }
  SECTION("when it connects itself, and is answered") {
    there->send(there->resolve(here.port->address()), make_packet(70, 3));
    REQUIRE(here.hear(1) == only(make_packet(70, 3)));
    here.send(to, make_packet(60, 2));
    there->hear(1);
  }
  CHECK(there->heard.front() == make_packet(60, 2));
}

TEST_CASE("a receiver that is stuck does not block others for ever") {
  Tcp factory;
  Listening here(factory);
  Listening stuck(factory);  // it receives nothing
  Listening there(factory);
  const Destination to_stuck = here.resolve(stuck.port->address());
  const Destination to_there = here.resolve(there.port->address());
  const Packet packet = make_packet(tcp::kMaxPacketBytes, 1);
  const std::array<Outgoing, 2> batch = {Outgoing{packet, {}, to_stuck},
                                         Outgoing{packet, {}, to_there}};

  std::size_t rounds = 0;
  for (int turns = 0; turns < 4'000'000 && rounds < 2000; ++turns) {
    const std::size_t taken = here.port->send(batch);
    rounds += taken == 2;
    if (taken == 1) rounds += here.port->send(std::span(batch).subspan(1)) == 1;
    std::array<Incoming, 8> in;
    const std::size_t got = there.port->receive(in);
    there.port->give_back(std::span(in).first(got));
    here.port->receive({});
  }

  CHECK(rounds == 2000);
  CHECK(here.port->counters().send_errors > 0);
  CHECK(here.port->counters().send_refused > 0);
  CHECK(there.port->counters().received > 1000);

  // It receives again, and packets reach it.
  stuck.comes_to([&] {
    here.turn();
    return stuck.heard.size() > 100;
  });
  const std::uint64_t dropped = here.port->counters().send_errors;
  for (int i = 0; i < 100; ++i) {
    here.send(to_stuck, make_packet(10, 1));
    here.turn();
    stuck.turn();
  }
  stuck.comes_to([&] {
    here.turn();
    return !stuck.heard.empty() && stuck.heard.back().size() == 10;
  });
  CHECK(stuck.heard.back() == make_packet(10, 1));
  CHECK(here.port->counters().send_errors == dropped);
}

TEST_CASE("a forgotten destination's connection is closed after all its packets have arrived") {
  Tcp factory;
  Listening here(factory);
  Listening there(factory);
  const Destination to = here.resolve(there.port->address());
  const Destination again = here.resolve(there.port->address());
  for (unsigned i = 0; i < 5; ++i) here.send(to, make_packet(10000, i));

  here.port->forget(to);
  there.hear(5);
  CHECK(connections_of(*here.port) == 1);
  here.send(again, make_packet(10, 5));
  here.port->forget(again);

  CHECK(there.hear(6).size() == 6);
  CHECK(here.comes_to([&] { return connections_of(*here.port) == 0; }));
}

TEST_CASE("the wait descriptor is readable while there is something to receive, and only then") {
  Tcp factory;
  Listening here(factory);
  Listening there(factory);
  const Destination to = here.resolve(there.port->address());
  const auto readable = [&](int timeout_ms) {
    pollfd watched{there.port->wait_fd(), POLLIN, 0};
    return poll(&watched, 1, timeout_ms) == 1;
  };
  CHECK_FALSE(readable(0));

  for (unsigned i = 0; i < 3; ++i) {
    here.send(to, make_packet(50, i));
    CHECK(readable(60'000));
    there.hear(i + 1);
    CHECK_FALSE(readable(0));
  }
}

}  // namespace
}  // namespace pullman::nic::contract
