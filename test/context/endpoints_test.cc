// Many endpoints, and many connections after each other: what they cost grows with how many are
// connected, and not with how many there have been.
#include <malloc.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "pullman/pullman.h"

namespace pullman::test {
namespace {

Config small() {
  Config config;
  config.nics = {"lo"};
  config.security = Config::Security::kOff;
  config.receive_packets = 16;
  config.send_packets = 64;
  config.packet_bytes = 1472;
  config.receive_buffer_bytes = 64 << 10;
  config.shared_memory = false;
  config.offloads = false;
  config.close_timeout = std::chrono::seconds(0);
  config.peer_timeout = std::chrono::hours(1);  // most of them have no turn
  return config;
}

// Each context has a few descriptors, and a shell grants few by itself.
void allow_descriptors() {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

// 0 under a sanitizer, whose memory glibc does not know.
std::size_t heap_bytes() {
  return mallinfo2().uordblks;
}

// Sends a message to the other context, and returns how many turns that takes.
std::size_t exchange(Context& one, PeerId there, Context& other) {
  std::byte sent{7};
  std::byte got{};
  Request sending;
  Request receiving;
  other.receive(kAnyPeer, 1, 0, {&got, 1}, receiving);
  one.send(there, 1, {&sent, 1}, sending);
  std::size_t turns = 0;
  while (!receiving.done() || !sending.done()) {
    one.progress();
    other.progress();
    ++turns;
  }
  REQUIRE(got == sent);
  return turns;
}

// Lets both ends forget each other.
void part(Context& one, PeerId there, Context& other) {
  one.disconnect(there);
  while (one.peer_state(there) != PeerState::kUnknown || other.stats().peers_connected != 0) {
    one.progress();
    other.progress();
  }
}

}  // namespace

TEST_CASE("memory and turns for a thousand endpoints are in proportion to those contacted",
          "[endpoints]") {
  constexpr std::size_t kEndpoints = 1000;
  allow_descriptors();
  std::vector<std::unique_ptr<Context>> others;
  for (std::size_t i = 0; i < kEndpoints; ++i) others.push_back(std::make_unique<Context>(small()));
  Config config = small();
  config.max_peers = kEndpoints;
  config.send_packets = 16384;  // that of many is not acknowledged, as their contexts have no turn
  Context hub(config);

  std::vector<std::size_t> bytes;
  std::vector<std::size_t> turns;
  std::size_t contacted = 0;
  for (const std::size_t goal : {std::size_t{250}, std::size_t{500}, std::size_t{1000}}) {
    const std::size_t first = contacted;
    const std::size_t bytes_before = heap_bytes();
    turns.push_back(0);
    for (; contacted < goal; ++contacted) {
      turns.back() += exchange(hub, hub.connect(others[contacted]->address()), *others[contacted]);
    }
    bytes.push_back((heap_bytes() - bytes_before) / (goal - first));
    turns.back() /= goal - first;
  }

  CHECK(hub.stats().peers_connected == kEndpoints);
  INFO("bytes of both ends per connection: " << bytes[0] << ", " << bytes[1] << ", " << bytes[2]);
  CHECK(bytes[2] <= bytes[0] + bytes[0] / 2);
  INFO("turns per connection: " << turns[0] << ", " << turns[1] << ", " << turns[2]);
  CHECK(turns[2] <= 2 * turns[0]);
}

TEST_CASE("connections that come and go leave nothing behind", "[endpoints]") {
  constexpr int kTimes = 10'000;
  Context one(small());
  Context other(small());
  std::size_t settled = 0;
  for (int i = 0; i < kTimes; ++i) {
    const PeerId there = one.connect(other.address());
    exchange(one, there, other);
    part(one, there, other);
    while (other.accept()) {
    }
    if (i == kTimes / 10) settled = heap_bytes();
  }
  INFO("after a tenth of them " << settled << " bytes, in the end " << heap_bytes());
  CHECK(heap_bytes() <= settled + settled / 100);
}

}  // namespace pullman::test
