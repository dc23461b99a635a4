// failover/striping.h: which rail takes the next packets.
#include "failover/striping.h"

#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

namespace pullman::failover {
namespace {

using std::chrono::microseconds;

Load load(int rtt_us, std::uint32_t window, std::uint32_t in_flight) {
  return {.rtt = microseconds(rtt_us),
          .window = window,
          .in_flight = in_flight,
          .may_send = in_flight < window};
}

TEST_CASE("the rail that delivers first takes the next packets") {
  const std::array loads = {load(500, 40, 20), load(500, 40, 0)};
  CHECK(rail_for_bulk(loads, 1000) == 1);
}

TEST_CASE(
    "of two rails with room the one with the shorter round trip is taken, though more waits "
    "there") {
  const std::array loads = {load(1000, 100, 0), load(100, 100, 50)};
  CHECK(rail_for_bulk(loads, 1000) == 1);
}

TEST_CASE("while much is left, every rail that may send is used") {
  const std::array loads = {load(100, 100, 100), load(1000, 20, 0)};
  CHECK(rail_for_bulk(loads, 100'000) == 1);
}

TEST_CASE("the end of a message waits for the fast rail rather than take the slow one") {
  const std::array loads = {load(100, 100, 100), load(5000, 20, 0)};
  CHECK(rail_for_bulk(loads, 40) == kNoRail);
}

TEST_CASE("a rail with a small window is used, so that the window can grow") {
  const std::array loads = {load(1300, 60, 60), load(1500, 2, 0)};
  CHECK(rail_for_bulk(loads, 24) == 1);
}

TEST_CASE("a rail that is down takes nothing") {
  std::array loads = {load(100, 100, 0), load(100, 100, 0)};
  loads[0].window = 0;
  loads[0].may_send = false;
  CHECK(rail_for_bulk(loads, 10) == 1);
  CHECK(rail_for_small(loads, 0) == 1);
  loads[1].may_send = false;
  CHECK(rail_for_small(loads, 1) == kNoRail);
}

TEST_CASE(
    "small messages take the shortest round trip, and do not alternate between similar ones") {
  CHECK(rail_for_small(std::array{load(500, 10, 0), load(100, 10, 0)}, 0) == 1);
  CHECK(rail_for_small(std::array{load(110, 10, 0), load(100, 10, 0)}, 0) == 0);
  CHECK(rail_for_small(std::array{load(110, 10, 10), load(100, 10, 0)}, 0) == 1);
}

// Each rail drains at its own pace and takes its proportion, so both end together.
TEST_CASE("rails of unequal speed end a message together") {
  const std::uint32_t faster = GENERATE(1u, 2u, 4u, 10u);
  std::array<double, 2> busy_until{};  // ms
  const std::array<double, 2> per_packet = {0.012, 0.012 * faster};
  std::uint64_t left = 745;
  double now = 0;
  while (left > 0) {
    std::array<Load, 2> loads;
    for (std::size_t i = 0; i < 2; ++i) {
      const double queued = std::max(0.0, busy_until[i] - now) / per_packet[i];
      loads[i] = {.rtt = microseconds(500),
                  .window = static_cast<std::uint32_t>(0.5 / per_packet[i]),
                  .in_flight = static_cast<std::uint32_t>(queued)};
      loads[i].may_send = loads[i].in_flight < loads[i].window;
    }
    const std::size_t rail = rail_for_bulk(loads, left);
    if (rail == kNoRail) {
      now += 0.001;
      continue;
    }
    busy_until[rail] = std::max(busy_until[rail], now) + per_packet[rail];
    --left;
  }
  const double both = 745 / (1 / per_packet[0] + 1 / per_packet[1]);
  CHECK(std::max(busy_until[0], busy_until[1]) < both + 0.8);
}

}  // namespace
}  // namespace pullman::failover
