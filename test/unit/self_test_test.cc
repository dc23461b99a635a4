// context/self_test_findings.h: each thing that is worth saying has a line, with what to do.
#include <catch2/catch.hpp>

#include "context/self_test_findings.h"

namespace pullman {
namespace {

NicFacts nic_of(std::string name, std::string driver = "udp") {
  NicFacts facts{.name = std::move(name),
                 .driver = std::move(driver),
                 .provider = "",
                 .hardware = true,
                 .limits = {}};
  facts.limits.packet_bytes = 1472;
  facts.limits.burst_bytes = 65507;
  return facts;
}

// Returns the lines; the only one, in most tests.
std::string lines_of(const std::vector<NicFacts>& nics, const HostFacts& host = {},
                     const Config& config = {}) {
  std::string out;
  for (const std::string& line : judge_host(config, nics, host)) {
    out += (out.empty() ? "" : "\n") + line;
  }
  return out;
}

}  // namespace

TEST_CASE("self-test: a host where all is well gives no line") {
  CHECK(lines_of({nic_of("eth0"), nic_of("eth1")}).empty());
}

TEST_CASE("self-test: buffers that are less than wanted are named with the sysctl") {
  NicFacts small = nic_of("eth0");
  small.limits.receive_buffer = {.granted = 425'984, .wanted = 8'000'000};
  CHECK_THAT(lines_of({small}), Catch::StartsWith("eth0: receive buffers of 425984 bytes") &&
                                    Catch::EndsWith("sysctl -w net.core.rmem_max=4000000"));
  small = nic_of("eth0");
  small.limits.send_buffer = {.granted = 1, .wanted = 100};
  CHECK_THAT(lines_of({small}), Catch::EndsWith("sysctl -w net.core.wmem_max=50"));
}

TEST_CASE("self-test: packets that are sent one by one are told, unless that was asked for") {
  NicFacts single = nic_of("eth0");
  single.limits.burst_bytes = 0;
  CHECK_THAT(lines_of({single}), Catch::Contains("UDP_SEGMENT"));
  Config config;
  config.offloads = false;
  CHECK(lines_of({single}, {}, config).empty());
}

TEST_CASE("self-test: what of the offloads is switched off is told with the command") {
  NicFacts off = nic_of("eth0");
  off.offloads = "UDP_SEGMENT (gso off), UDP_GRO";
  CHECK_THAT(lines_of({off}), Catch::EndsWith("ethtool -K eth0 gso on"));
  off.offloads = "UDP_SEGMENT, UDP_GRO";
  CHECK(lines_of({off}).empty());
}

TEST_CASE("self-test: offloads that are off on a virtual interface, as by default, are not told") {
  NicFacts off = nic_of("veth0");
  off.offloads = "UDP_SEGMENT (gso off), UDP_GRO (gro off)";
  off.hardware = false;
  CHECK(lines_of({off}).empty());
}

TEST_CASE("self-test: a NIC whose packets are smaller than another's is told with that one") {
  NicFacts large = nic_of("eth1");
  large.limits.packet_bytes = 8972;
  CHECK_THAT(lines_of({nic_of("eth0"), large}),
             Catch::StartsWith("eth0: packets of 1472 bytes at most, eth1 carries 8972"));
  large.limits.packet_bytes = 1472 + 20;  // IPv4 beside IPv6
  CHECK(lines_of({nic_of("eth0"), large}).empty());
  large.limits.packet_bytes = 8972;
  large.loopback = true;
  CHECK(lines_of({nic_of("eth0"), large}).empty());
}

TEST_CASE("self-test: limits of the process and the host are told where they matter") {
  CHECK_THAT(lines_of({nic_of("eth0")}, {.descriptors_left = 9}), Catch::Contains("ulimit -n"));
  const HostFacts little_locked{.lockable_bytes = 65536};
  CHECK(lines_of({nic_of("eth0")}, little_locked).empty());
  CHECK_THAT(lines_of({nic_of("usnic_0", "fabric")}, little_locked), Catch::Contains("ulimit -l"));
  const HostFacts little_shared{.shared_bytes = 4096};
  CHECK_THAT(lines_of({nic_of("eth0")}, little_shared), Catch::Contains("--shm-size"));
  Config config;
  config.shared_memory = false;
  CHECK(lines_of({nic_of("eth0")}, little_shared, config).empty());
  config = {};
  config.busy_poll = std::chrono::microseconds(50);
  const HostFacts no_polling{.polls_when_waiting = false};
  CHECK(lines_of({nic_of("eth0")}, no_polling).empty());
  CHECK_THAT(lines_of({nic_of("eth0")}, no_polling, config), Catch::Contains("net.core.busy_poll"));
}

TEST_CASE("self-test: packets without a key are told where they leave the host") {
  Config config;
  config.security = Config::Security::kOff;
  CHECK_THAT(lines_of({nic_of("eth0")}, {}, config), Catch::Contains("pullman-key"));
  NicFacts loopback = nic_of("lo");
  loopback.loopback = true;
  CHECK(lines_of({loopback}, {}, config).empty());
}

TEST_CASE("self-test: a rail that is not fine has a line, with where it leads and what to do") {
  RailCheck rail{.number = 1,
                 .nic = "eth1",
                 .local = "10.1.0.1:7",
                 .remote = "10.1.0.2:7",
                 .smallest = {},
                 .largest = {}};
  rail.finding = RailFinding::kFine;
  CHECK(judge_rail("10.0.0.2:7", rail).empty());
  rail.finding = RailFinding::kOneWayThere;
  CHECK_THAT(judge_rail("10.0.0.2:7", rail),
             Catch::StartsWith("rail 1 to 10.0.0.2:7, from 10.1.0.1:7 (eth1) to 10.1.0.2:7: one "
                               "way there: ") &&
                 Catch::Contains("look at the peer's routes and our filters"));
}

}  // namespace pullman
