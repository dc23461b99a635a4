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

// One round trip in which everything in flight is acked but the `lost` packets.
void round(Congestion& congestion, std::uint64_t& number, Duration delay, std::uint32_t lost = 0,
           Duration least = us(20)) {
  const std::uint32_t window = congestion.window();
  congestion.on_lost(lost);
  number += window;
  congestion.on_ack({.acked = window - lost,
                     .in_flight = window,
                     .highest_acked = number - 1,
                     .next_number = number,
                     .delay = delay,
                     .least = least});
}

// A packet of the current round is acked after `delay`.
void late_packet(Congestion& congestion, std::uint64_t number, Duration delay) {
  congestion.on_ack({.acked = 1,
                     .in_flight = congestion.window(),
                     .highest_acked = number - 1,
                     .next_number = number,
                     .delay = delay,
                     .least = us(20)});
}

void grow_to(Congestion& congestion, std::uint64_t& number, std::uint32_t window) {
  while (congestion.window() < window) round(congestion, number, us(20));
  REQUIRE(congestion.window() == window);
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

TEST_CASE("a sample lowers the least round trip to its delay plus its hold time at most") {
  Rtt rtt(ms(100), ms(1));
  rtt.add(us(300));
  rtt.add(us(1), us(350));
  CHECK(rtt.least() == us(300));
  rtt.add(us(10), us(250));
  CHECK(rtt.least() == us(260));  // the sample and the time held
  rtt.add(us(200), us(20));
  CHECK(rtt.least() == us(200));
}

TEST_CASE("the expected round trip is the greater of the latest and the smoothed sample") {
  Rtt rtt(ms(90), ms(1));
  CHECK(rtt.expected() == ms(30));  // a third of the timeout

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

TEST_CASE("the window doubles each round while it is in full use, up to its limit") {
  Congestion congestion(1000);
  std::uint64_t number = 100;
  CHECK(congestion.window() == 16);
  round(congestion, number, us(20));
  CHECK(congestion.window() == 32);
  for (int i = 0; i < 10; ++i) round(congestion, number, us(20));
  CHECK(congestion.window() == 1000);
}

TEST_CASE("a window that was not used does not grow") {
  Congestion congestion(1000);
  congestion.on_ack({.acked = 1,
                     .in_flight = 1,
                     .highest_acked = 9,
                     .next_number = 10,
                     .delay = us(20),
                     .least = us(20)});
  CHECK(congestion.window() == 16);
}

TEST_CASE(
    "while there is a queue the window grows by a packet a round, while there is none by more") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);

  round(congestion, number, us(200));
  CHECK(congestion.window() == 257);
  round(congestion, number, us(90));
  CHECK(congestion.window() == 257 + 32 + 1);
}

TEST_CASE("a small window grows by less than a packet a round while there is a queue") {
  std::uint64_t number = 100;
  Congestion small(4096);
  round(small, number, us(5000));
  round(small, number, us(5000));
  REQUIRE(small.window() == 4);

  round(small, number, us(200));

  CHECK(small.window() == 4);
  round(small, number, us(200));
  CHECK(small.window() == 5);
}

TEST_CASE("a round is judged by its least delay: one late packet is no queue") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);

  SECTION("in its middle") {
    late_packet(congestion, number, us(5000));
    round(congestion, number, us(20));
  }
  SECTION("at its end") {
    late_packet(congestion, number, us(20));
    round(congestion, number, us(5000));
  }
  CHECK(congestion.window() > 256);
}

TEST_CASE(
    "delay above the target shrinks the window in proportion, once a round, by half at most") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);

  round(congestion, number, us(625));  // exceeds 500 us by a fifth of itself

  CHECK(congestion.window() == 204);
  round(congestion, number, ms(500));
  CHECK(congestion.window() == 102);
}

TEST_CASE("a flow that never saw the queue empty has the same target as one that did") {
  Congestion early(4096), late(4096);
  std::uint64_t early_number = 100, late_number = 100;
  grow_to(early, early_number, 256);
  grow_to(late, late_number, 256);

  round(early, early_number, us(600), 0, us(20));
  round(late, late_number, us(600), 0, us(580));

  CHECK(early.window() < 256);
  CHECK(early.window() == late.window());
}

TEST_CASE("a small window has a longer target than a large one") {
  Congestion small(4096), large(4096);
  std::uint64_t number = 100;
  grow_to(large, number, 256);
  round(small, number, us(5000));
  REQUIRE(small.window() == 8);

  round(small, number, us(600));
  round(large, number, us(600));

  CHECK(small.window() >= 8);
  CHECK(large.window() < 256);
}

TEST_CASE(
    "a path longer than the target is recognised when a small window does not shorten its delay") {
  Congestion congestion(4096);
  std::uint64_t number = 100;

  for (int i = 0; i < 8; ++i) round(congestion, number, ms(5), 0, ms(5));
  CHECK(congestion.window() <= 4);
  for (int i = 0; i < 12; ++i) round(congestion, number, ms(5), 0, ms(5));

  CHECK(congestion.window() > 1000);
}

TEST_CASE("a queue that others fill does not make the path a long one") {
  Congestion congestion(4096);
  std::uint64_t number = 100;

  round(congestion, number, us(20));
  for (int i = 0; i < 100; ++i) round(congestion, number, us(1300), 0, us(20));
  CHECK(congestion.window() == 1);

  for (int i = 0; i < 8; ++i) round(congestion, number, us(900), 0, us(20));
  CHECK(congestion.window() <= 2);
}

TEST_CASE("a flow that never saw the queue empty takes little of it for the length of the path") {
  Congestion congestion(4096);
  std::uint64_t number = 100;

  for (int i = 0; i < 40; ++i) round(congestion, number, us(1400), 0, us(700));

  CHECK(congestion.window() <= 4);
}

TEST_CASE("a sender that always polls late takes neither that nor a queue for a long path") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  // An ACK found after 900 us counts 300: it may have waited for 600.
  const Duration least = us(900);
  round(congestion, number, us(300), 0, least);
  CHECK(congestion.window() == 32);
  // Lateness has no limit: an ACK that may have been there at once means no queue.
  round(congestion, number, us(-80), 0, least);
  CHECK(congestion.window() == 64);

  for (int i = 0; i < 100; ++i) round(congestion, number, us(1300), 0, least);
  CHECK(congestion.window() == 1);
}

TEST_CASE("a path that was short and became long is recognised as long after a time") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);

  for (int i = 0; i < 195; ++i) round(congestion, number, ms(5), 0, us(20));
  CHECK(congestion.window() == 1);
  for (int i = 0; i < 50; ++i) round(congestion, number, ms(5), 0, us(20));

  CHECK(congestion.window() > 16);
}

TEST_CASE("where there is no queue a little loss is ignored, and much costs the fraction lost") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 1024);

  round(congestion, number, us(20), 51);  // 5 %
  CHECK(congestion.window() == 2048);
  round(congestion, number, us(20), 512);
  CHECK(congestion.window() == 2048 - 512);
}

TEST_CASE("where there is a queue one loss costs a quarter of the window") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);

  round(congestion, number, us(200), 1);

  CHECK(congestion.window() == 192);
}

TEST_CASE("the first round with a queue ends the doubling for good") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 64);

  round(congestion, number, us(200));
  CHECK(congestion.window() == 65);
  round(congestion, number, us(20));

  CHECK(congestion.window() == 65 + 8 + 1);
}

TEST_CASE("a flow that never saw the queue empty grows no faster in it than one that did") {
  Congestion early(4096), late(4096);
  std::uint64_t early_number = 100, late_number = 100;
  grow_to(early, early_number, 64);
  grow_to(late, late_number, 64);
  round(early, early_number, ms(1));
  round(late, late_number, ms(1));
  const std::uint32_t window = early.window();

  round(early, early_number, us(250), 0, us(20));
  round(late, late_number, us(250), 0, us(240));

  CHECK(early.window() == window + 1);
  CHECK(late.window() == window + 1);
}

TEST_CASE("losses without a queue leave four packets: with fewer each loss costs a timeout") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  for (int i = 0; i < 40; ++i) {
    round(congestion, number, us(20), std::max(congestion.window() / 5, 1u));
  }
  CHECK(congestion.window() >= 4);
  CHECK(congestion.window() <= 6);
}

TEST_CASE("a path taken for a long one by mistake has the usual target again in time") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  round(congestion, number, us(20));
  for (int i = 0; i < 210; ++i) round(congestion, number, ms(5), 0, us(20));
  const std::uint32_t believed = congestion.window();
  for (int i = 0; i < 8; ++i) round(congestion, number, ms(5), 0, us(20));
  REQUIRE(congestion.window() > believed);

  for (int i = 0; i < 40; ++i) round(congestion, number, us(20));
  const std::uint32_t window = congestion.window();
  round(congestion, number, ms(3));

  CHECK(congestion.window() < window);
}

TEST_CASE("a timeout halves the window and ends the doubling") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 64);

  congestion.on_timeout();
  CHECK(congestion.window() == 32);
  round(congestion, number, us(20));

  CHECK(congestion.window() == 32 + 4 + 1);
}

TEST_CASE("timeouts that the peer's absence explains cost nothing once it answers") {
  Congestion congestion(4096);
  std::uint64_t number = 100;
  grow_to(congestion, number, 256);
  const Duration delay = GENERATE(us(20), ms(3));
  for (int i = 0; i < 3; ++i) congestion.on_timeout();
  REQUIRE(congestion.window() == 32);

  congestion.on_ack({.acked = 1,
                     .in_flight = 1,
                     .highest_acked = 1,
                     .next_number = number,
                     .delay = us(20),
                     .is_sampled = false,
                     .least = us(20)});
  CHECK(congestion.window() == 32);  // nothing is known yet
  const auto answer = [&](Duration took) {
    congestion.on_ack({.acked = 1,
                       .in_flight = 1,
                       .highest_acked = 1,
                       .next_number = number,
                       .delay = took,
                       .is_sampled = true,
                       .least = us(20)});
  };
  answer(delay);
  CHECK(congestion.window() == (delay == us(20) ? 256 : 32));
  answer(us(20));  // the first answer counts
  CHECK(congestion.window() == (delay == us(20) ? 256 : 32));
}

TEST_CASE("the window never falls below one packet, whatever happens") {
  Congestion congestion(4096);
  for (int i = 0; i < 50; ++i) congestion.on_timeout();
  CHECK(congestion.window() == 1);
  std::uint64_t number = 100;
  round(congestion, number, ms(50), 1);
  CHECK(congestion.window() == 1);
}

}  // namespace pullman::reliability
