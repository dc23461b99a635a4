// nic/trace/, context/trace_file: which packets a trace has, what of them, and what it is called.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>

#include "context/trace_file.h"
#include "context/trace_signal.h"
#include "context/tracer.h"
#include "list_port.h"
#include "nic/trace/traced_port.h"
#include "shared_folder.h"

namespace pullman::nic::trace {
namespace {

Datagram bytes_of(std::size_t count, int value) {
  return Datagram(count, static_cast<std::byte>(value));
}

Address address_of(int host) {
  Address address;
  address.kind = 4;
  address.length = 6;
  address.bytes[3] = static_cast<std::byte>(host);
  return address;
}

// A port that is traced, and what is behind it.
struct Traced {
  explicit Traced(std::size_t records = 8) : ring(records * sizeof(Record), now) {
    auto owned = std::make_unique<ListPort>(1, 0, 1472);
    list = owned.get();
    const Address address = list->address();
    number = *ring.add_port({.name = "eth0 data", .description = "list", .address = address});
    port = std::make_unique<TracedPort>(std::move(owned), ring, number);
  }

  std::size_t send(std::initializer_list<Datagram> packets, Destination to = 1) {
    std::vector<Outgoing> batch;
    for (const Datagram& packet : packets)
      batch.push_back({.head = packet, .payload = {}, .to = to});
    return port->send(batch);
  }
  Destination resolve(const Address& address) {
    port->resolve(address, 7);
    PortEvent event;
    REQUIRE(port->poll_events({&event, 1}) == 1);
    return event.to;
  }

  Instant now{std::chrono::seconds(5)};
  Ring ring;
  ListPort* list = nullptr;
  std::uint16_t number = 0;
  std::unique_ptr<TracedPort> port;
};

std::string written(const Ring& ring, const shm::SharedFolder& folder) {
  const auto path = folder.path() / "t.pcapng";
  write_trace(ring, path, "why", {});
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a packet of two segments is recorded as one, with the time of the turn", "[trace]") {
  Traced traced;
  const Datagram head = bytes_of(32, 1);
  const Datagram payload = bytes_of(64, 2);
  const Outgoing packet{.head = head, .payload = payload, .to = 1};
  traced.now += std::chrono::seconds(1);

  traced.port->send({&packet, 1});

  REQUIRE(traced.ring.kept() == 1);
  const Record& record = traced.ring.record(0);
  CHECK(record.sent);
  CHECK(record.length == 96);
  CHECK(record.at == Instant(std::chrono::seconds(6)));
  REQUIRE(record.kept == 96);
  CHECK(record.bytes[31] == std::byte{1});
  CHECK(record.bytes[32] == std::byte{2});
}

TEST_CASE("of a batch that the port takes in part, only that part is recorded", "[trace]") {
  Traced traced;
  traced.list->room = 2;

  CHECK(traced.send({bytes_of(40, 1), bytes_of(40, 2), bytes_of(40, 3)}) == 2);

  REQUIRE(traced.ring.kept() == 2);
  CHECK(traced.ring.record(1).bytes[0] == std::byte{2});
  traced.list->room = 0;
  traced.send({bytes_of(40, 3)});
  CHECK(traced.ring.recorded() == 2);
}

TEST_CASE("of a long packet the first bytes and its length are kept, wherever it is cut",
          "[trace]") {
  Traced traced;
  const std::size_t head_bytes = GENERATE(std::size_t{32}, Record::kSnapBytes, std::size_t{1000});
  const Datagram head = bytes_of(head_bytes, 1);
  const Datagram payload = bytes_of(472, 2);
  const Outgoing packet{.head = head, .payload = payload, .to = 1};

  traced.port->send({&packet, 1});

  const Record& record = traced.ring.record(0);
  CHECK(record.length == head_bytes + 472);
  CHECK(record.kept == Record::kSnapBytes);
  CHECK(record.bytes[Record::kSnapBytes - 1] == std::byte(head_bytes == 32 ? 2 : 1));
}

TEST_CASE("every byte of a packet of any length is kept, and none behind it", "[trace]") {
  Traced traced(1);
  for (std::size_t count = 0; count <= Record::kSnapBytes; ++count) {
    Datagram packet(count);
    for (std::size_t i = 0; i < count; ++i) packet[i] = static_cast<std::byte>(i + 1);
    traced.send({bytes_of(Record::kSnapBytes, 0)});

    traced.send({packet});

    const Record& record = traced.ring.record(0);
    REQUIRE(record.kept == count);
    CHECK(std::equal(packet.begin(), packet.end(), record.bytes));
    CHECK(std::all_of(record.bytes + count, std::end(record.bytes),
                      [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST_CASE("what is received is recorded, and an empty look is not", "[trace]") {
  Traced traced;
  std::array<Incoming, 4> batch;
  CHECK(traced.port->receive(batch, batch.size()) == 0);
  CHECK(traced.ring.kept() == 0);
  traced.list->arriving = {bytes_of(28, 9), bytes_of(200, 8)};

  CHECK(traced.port->receive(batch, batch.size()) == 2);

  REQUIRE(traced.ring.kept() == 2);
  CHECK_FALSE(traced.ring.record(0).sent);
  CHECK(traced.ring.record(0).kept == 28);
  CHECK(traced.ring.record(1).length == 200);
  CHECK(traced.ring.destination(0) == nullptr);
}

TEST_CASE("a full ring has the last packets, the oldest first", "[trace]") {
  Traced traced(4);
  for (int i = 0; i < 10; ++i) traced.send({bytes_of(40, i)});

  CHECK(traced.ring.recorded() == 10);
  REQUIRE(traced.ring.kept() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(traced.ring.record(static_cast<std::size_t>(i)).bytes[0] == std::byte(6 + i));
  }
}

TEST_CASE("a packet went where its destination led when it was sent", "[trace]") {
  Traced traced;
  const Destination to = traced.resolve(address_of(2));
  traced.send({bytes_of(40, 1)}, to);
  traced.ring.note_resolved(traced.number, to, address_of(3));  // forgotten meanwhile
  traced.send({bytes_of(40, 2)}, to);
  traced.send({bytes_of(40, 3)}, to + 1);

  REQUIRE(traced.ring.destination(0) != nullptr);
  CHECK(*traced.ring.destination(0) == address_of(2));
  CHECK(*traced.ring.destination(1) == address_of(3));
  CHECK(traced.ring.destination(2) == nullptr);
}

TEST_CASE("destinations are told apart also when the ring has been full", "[trace]") {
  Traced traced(2);
  const Destination to = traced.resolve(address_of(2));
  for (int i = 0; i < 5; ++i) traced.send({bytes_of(40, i)}, to);
  traced.ring.note_resolved(traced.number, to, address_of(3));
  traced.send({bytes_of(40, 5)}, to);

  CHECK(*traced.ring.destination(0) == address_of(2));
  CHECK(*traced.ring.destination(1) == address_of(3));
}

TEST_CASE("a port that comes back is the same one, and ports without number are refused",
          "[trace]") {
  Instant now{};
  Ring ring(sizeof(Record), now);
  const auto add = [&](std::size_t i) {
    return ring.add_port({.name = std::to_string(i), .description = {}, .address = {}});
  };
  for (std::size_t i = 0; i < Ring::kMaxPorts; ++i) REQUIRE(add(i) == i);
  CHECK(add(17) == 17);
  CHECK_FALSE(add(Ring::kMaxPorts).has_value());
}

TEST_CASE("the file says how many packets are not in it, and why it was written", "[trace]") {
  const shm::SharedFolder folder;
  Traced traced(4);
  for (int i = 0; i < 10; ++i) traced.send({bytes_of(40, i)});

  const std::string file = written(traced.ring, folder);

  CHECK(file.find("why") != std::string::npos);
  CHECK(file.find("eth0 data") != std::string::npos);
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    REQUIRE(at + sizeof value <= file.size());
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  };
  std::size_t packets = 0;
  std::size_t last = 0;
  for (std::size_t at = 0; at < file.size(); at += word(at + 4)) {
    REQUIRE(word(at + 4) % 4 == 0);
    CHECK(word(at + word(at + 4) - 4) == word(at + 4));
    packets += word(at) == 6;
    last = at;
  }
  CHECK(packets == 4);
  CHECK(word(last) == 5);
  CHECK(word(last + 24) == 10);  // received
  CHECK(word(last + 36) == 6);   // dropped
}

TEST_CASE("a trace that cannot be written leaves no file behind", "[trace]") {
  const shm::SharedFolder folder;
  Traced traced;
  const auto path = folder.path() / "taken";
  std::filesystem::create_directory(path);

  CHECK_THROWS_AS(write_trace(traced.ring, path, "", {}), std::system_error);
  CHECK_THROWS_AS(write_trace(traced.ring, folder.path() / "nowhere/t", "", {}), std::system_error);

  const auto files = std::filesystem::directory_iterator(folder.path());
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("the name of a trace tells processes, contexts and causes apart", "[trace]") {
  const TraceOwner first{.host = "node7", .process = 17, .context = 1};
  const TraceOwner second{.host = "node7", .process = 17, .context = 2};

  CHECK(trace_path("/d/t.pcapng", first, "") == "/d/t.17.pcapng");
  CHECK(trace_path("/d/t.pcapng", second, "failure") == "/d/t.17-2.failure.pcapng");
  CHECK(trace_path("/d/%h-%p.pcapng", first, "") == "/d/node7-17.pcapng");
  CHECK(trace_path("/d/%h-%p.pcapng", second, "signal") == "/d/node7-17-2.signal.pcapng");
  CHECK(trace_path("/d/100%%.%x", first, "") == "/d/100%.17.%x");
  CHECK(trace_path("/d/t", first, "") == "/d/t.17");
}

TEST_CASE("a trace is no folder, and 0 is none", "[trace]") {
  const shm::SharedFolder folder;
  const Instant now{};
  Config config;
  config.trace = "0";
  CHECK(Tracer::make(config, now) == nullptr);
  config.trace = (folder.path() / "t").string();
  CHECK(Tracer::make(config, now) != nullptr);
  for (const std::string& wrong : {folder.path().string(), folder.path().string() + "/t/"}) {
    config.trace = wrong;
    CHECK_THROWS_WITH(Tracer::make(config, now), Catch::Matchers::Contains("name a file in it"));
  }
}

TEST_CASE("signals that mean nothing else are taken by name", "[trace]") {
  CHECK(TraceSignal::number_of("USR2") == SIGUSR2);
  CHECK(TraceSignal::number_of("SIGUSR1") == SIGUSR1);
  for (const char* name : {"", "SEGV", "KILL", "SIGSTOP", "TERM", "CHLD", "usr1", "12"}) {
    CHECK(TraceSignal::number_of(name) == 0);
  }
}

TEST_CASE("a signal is counted while anybody watches, and ends nothing afterwards", "[trace]") {
  {
    const TraceSignal signal(SIGUSR2);
    REQUIRE(signal.watches());
    const std::uint32_t before = signal.count();
    { const TraceSignal other(SIGUSR2); }
    raise(SIGUSR2);
    CHECK(signal.count() == before + 1);
  }
  raise(SIGUSR2);
  signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("a handler of the program's own is left alone", "[trace]") {
  const auto own = [](int) {};
  signal(SIGUSR2, own);
  {
    const TraceSignal signal(SIGUSR2);
    CHECK_FALSE(signal.watches());
  }
  CHECK(signal(SIGUSR2, SIG_DFL) == static_cast<sighandler_t>(own));
}

}  // namespace
}  // namespace pullman::nic::trace
