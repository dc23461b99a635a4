// reliability/rtt.h and congestion.h.
#include <catch2/catch.hpp>

#include "reliability/congestion.h"
#include "reliability/rtt.h"

namespace pullman::reliability {
namespace {

constexpr Duration us(std::int64_t n) {
  return std::chrono::microseconds(n);
}
constexpr Duration ms(std::int64_t n) {
  return std::chrono::milliseconds(n);
}

// One round trip: everything in flight is acked, `lost` packets were lost.
void round(Congestion& congestion, std::uint64_t& number, Duration rtt, std::uint32_t lost = 0) {
  const std::uint32_t window = congestion.window();
  congestion.on_lost(lost);
  number += window;
  congestion.on_ack({.acked = window - lost,
                     .in_flight = window,
                     .highest_acked = number - 1,
                     .next_number = number,
                     .rtt = rtt,
                     .least = us(20)});
}

}  // namespace

TEST_CASE(
    "before the first sample the timeout is the initial one; then it follows the round trip") {
  Rtt rtt(ms(100), ms(1));
  CHECK(rtt.timeout(us(50)) == ms(100));

  rtt.add(ms(4));

  CHECK(rtt.smoothed() == ms(4));
  CHECK(rtt.timeout(us(50)) == ms(4) + 4 * ms(2) + us(50));
}

TEST_CASE("a round trip is expected to take the greater of the latest and the smoothed sample") {
  Rtt rtt(ms(90), ms(1));
  CHECK(rtt.expected() == ms(30));  // the timeout stands for three of them

  rtt.add(us(80));
  rtt.add(us(160));
  CHECK(rtt.expected() == us(160));
  rtt.add(us(10));
  CHECK(rtt.expected() == us(80));
}

TEST_CASE("the timeout has a floor, and a ceiling unless the round trip is longer") {
  Rtt fast(ms(100), ms(1));
  for (int i = 0; i < 100; ++i) fast.add(us(10));
  CHECK(fast.timeout(us(50)) == ms(1));

  Rtt slow(ms(100), ms(1));
  slow.add(ms(80));
  CHECK(slow.timeout(us(50)) == 2 * ms(80) + us(50));
}

TEST_CASE("a sample is smoothed by an eighth and remembered as the least") {
  Rtt rtt(ms(100), ms(1));
  rtt.add(us(80));
  rtt.add(us(160));
  CHECK(rtt.smoothed() == us(90));
  CHECK(rtt.latest() == us(160));
  CHECK(rtt.least() == us(80));
}

TEST_CASE("the window doubles each round while it is what limits, up to its limit") {
  Congestion congestion(1000);
  std::uint64_t number = 100;
  CHECK(congestion.window() == 64);
  round(congestion, number, us(20));
  CHECK(congestion.window() == 128);
  for (int i = 0; i < 10; ++i) round(congestion, number, us(20));
  CHECK(congestion.window() == 1000);
}

TEST_CASE("a window that was not used does not grow") {
  Congestion congestion(1000);
  congestion.on_ack({.acked = 1,
                     .in_flight = 1,
                     .highest_acked = 9,
                     .next_number = 10,
                     .rtt = us(20),
                     .least = us(20)});
  CHECK(congestion.window() == 64);
}

TEST_CASE("queueing shrinks the window in proportion, once a round, by half at most") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  for (int i = 0; i < 5; ++i) round(congestion, number, us(20));
  const std::uint32_t before = congestion.window();

  round(congestion, number, us(1160));  // twice the target of 4 x 20 + 500

  CHECK(congestion.window() == before - before / 2);
  const std::uint32_t low = congestion.window();
  round(congestion, number, ms(500));
  CHECK(congestion.window() == low - low / 2);
}

TEST_CASE("a little random loss is ignored; much of it shrinks the window by the fraction lost") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  for (int i = 0; i < 4; ++i) round(congestion, number, us(20));
  REQUIRE(congestion.window() == 1024);

  round(congestion, number, us(20), 10);
  CHECK(congestion.window() == 2048);
  round(congestion, number, us(20), 512);
  CHECK(congestion.window() == 2048 - 512);
}

TEST_CASE("the window never falls below one packet, whatever happens") {
  Congestion congestion(4096);
  for (int i = 0; i < 50; ++i) congestion.on_timeout();
  CHECK(congestion.window() == 1);
  Congestion tiny(2);
  for (int i = 0; i < 5; ++i) tiny.on_timeout();
  CHECK(tiny.window() == 1);
}

}  // namespace pullman::reliability
