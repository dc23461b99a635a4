// Forged ICMP messages, which any host can send to a UDP port.
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "nic/contract.h"
#include "nic/factories.h"
#include "nic/peers.h"

namespace pullman::nic::contract {
namespace {

// RFC 1071.
std::uint16_t checksum_of(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::uint16_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

class Forger {
 public:
  Forger() : fd_(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)) {}
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;
  ~Forger() {
    if (fd_ >= 0) ::close(fd_);
  }

  // Raw sockets need root.
  bool may() const {
    if (fd_ < 0) WARN("skipped (no raw sockets): forged ICMP messages");
    return fd_ >= 0;
  }
  // Tells the port that what it sent to `to`, at the same host, is unreachable, for the reason
  // `code`.
  void tell(std::uint16_t port, std::uint16_t to, std::uint8_t code) const {
    sockaddr_in host{};
    host.sin_family = AF_INET;
    host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    icmphdr said{};
    said.type = ICMP_DEST_UNREACH;
    said.code = code;
    iphdr ip{};
    ip.version = 4;
    ip.ihl = sizeof ip / 4;
    ip.tot_len = htons(sizeof ip + sizeof(udphdr) + 100);
    ip.ttl = 64;
    ip.protocol = IPPROTO_UDP;
    ip.saddr = ip.daddr = host.sin_addr.s_addr;
    udphdr udp{};
    udp.source = htons(port);
    udp.dest = htons(to);
    udp.len = htons(sizeof udp + 100);
    std::array<std::byte, sizeof said + sizeof ip + sizeof udp> bytes;
    std::memcpy(&bytes[sizeof said], &ip, sizeof ip);
    std::memcpy(&bytes[sizeof said + sizeof ip], &udp, sizeof udp);
    std::memcpy(bytes.data(), &said, sizeof said);
    said.checksum = checksum_of(bytes);
    std::memcpy(bytes.data(), &said, sizeof said);
    REQUIRE(::sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&host),
                     sizeof host) == static_cast<ssize_t>(bytes.size()));
  }

 private:
  int fd_;
};

std::vector<Packet> burst() {
  std::vector<Packet> packets;
  for (unsigned i = 0; i < 40; ++i) packets.push_back(make_packet(1400, i));
  return packets;
}

bool readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, 0) != 0;
}

TEST_CASE(
    "after a forged ICMP message of any kind bursts go on, and the descriptor is not left "
    "readable") {
  const Forger forger;
  if (!forger.may()) return;
  Kernel factory;
  Bench bench(factory);
  Port& here = bench.here();
  const std::uint16_t port = port_of(here.address());
  const auto code = GENERATE(range(0, 16));
  CAPTURE(code);
  const int fd = here.wait_fd();

  for (int i = 0; i < 3; ++i) {
    if (code != ICMP_FRAG_NEEDED) forger.tell(port, 9, static_cast<std::uint8_t>(code));
    bench.send(burst());
    CHECK(bench.receive(40) == burst());
  }

  CHECK(here.counters().returned == (code == ICMP_FRAG_NEEDED ? 0 : 3));
  CHECK(here.counters().offload_refused == 0);
  CHECK(here.counters().send_errors == 0);
  bench.send(burst());
  CHECK(here.counters().bursts_sent > 0);
  CHECK_FALSE(readable(fd));
}

TEST_CASE(
    "thousands of ICMP messages are read a few at a time, and packets are received in between") {
  constexpr unsigned kMessages = 2000;
  const Forger forger;
  if (!forger.may()) return;
  Kernel factory;
  Bench bench(factory);
  Port& here = bench.here();
  const std::uint16_t port = port_of(here.address());
  Bench other(factory);
  const Destination back = other.resolve(here.address());
  const Packet packet = make_packet(100, 1);
  const Outgoing out{packet, {}, back};

  for (unsigned i = 0; i < kMessages; ++i) forger.tell(port, 9, ICMP_PORT_UNREACH);
  REQUIRE(other.here().send({&out, 1}) == 1);
  Incoming in;
  std::size_t got = here.receive({&in, 1});
  const std::uint64_t at_first = here.counters().returned;
  for (unsigned turn = 0; turn < kMessages && got == 0; ++turn) got = here.receive({&in, 1});

  CHECK(at_first > 0);
  CHECK(at_first <= kMessages / 4);
  REQUIRE(got == 1);
  here.give_back({&in, 1});
}

TEST_CASE("ICMP messages cause few searches through all peers between two polls") {
  const auto host = [](unsigned number) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(1);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number);
    return name;
  };
  const auto address_of = [](const sockaddr_in& name) {
    return *from_sockaddr(reinterpret_cast<const sockaddr*>(&name), sizeof name);
  };
  constexpr unsigned kPeers = 100;
  Peers peers(address_of(host(0)));
  std::array<PortEvent, kPeers> events;
  for (unsigned i = 0; i < kPeers; ++i) peers.resolve(address_of(host(i)), i);
  REQUIRE(peers.take_events(events) == kPeers);
  const auto told = [&] {
    unsigned count = 0;
    for (unsigned i = 0; i < kPeers; ++i) count += peers.path_bytes(i) != 0;
    return count;
  };

  const sockaddr_in nobody = host(1000);
  for (unsigned i = 0; i < 4; ++i)
    peers.note_refused(reinterpret_cast<const sockaddr*>(&nobody), {});
  for (unsigned i = 0; i < kPeers; ++i) {
    const sockaddr_in name = host(i);
    peers.note_path_mtu(reinterpret_cast<const sockaddr*>(&name), 1280);
  }
  CHECK(told() == 4);

  REQUIRE(peers.take_events(events) == 0);
  const sockaddr_in last = host(kPeers - 1);
  peers.note_path_mtu(reinterpret_cast<const sockaddr*>(&last), 1280);
  CHECK(told() == 5);
}

}  // namespace
}  // namespace pullman::nic::contract
