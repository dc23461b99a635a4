#include "failover/loss_rate.h"

#include <catch2/catch.hpp>

namespace pullman::failover {
namespace {

// The counters of a link, of which `rate` is told after each packet.
struct Counted {
  void pass(std::uint64_t packets, std::uint64_t lost_of_ten, std::uint32_t window) {
    for (std::uint64_t i = 0; i < packets; ++i) {
      ++(i % 10 < lost_of_ten ? lost : arrived);
      rate.handle_ack(arrived, lost, window);
    }
  }

  LossRate rate;
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;
};

TEST_CASE("what a rail loses at any window is lasting") {
  Counted rail;
  rail.pass(3 * 128, 3, 4);
  CHECK(rail.rate.lasting() == Approx(0.3).margin(0.02));
  CHECK(rail.rate.recent() > 0.2);
}

TEST_CASE("what is lost of one window, and not of the next, is not lasting") {
  Counted rail;
  rail.pass(4 * 128, 0, 1024);
  rail.pass(1024, 5, 1024);
  CHECK(rail.rate.lasting() == 0);
  rail.pass(1024, 0, 512);
  CHECK(rail.rate.lasting() == 0);
}

TEST_CASE("a span takes a window, however large") {
  LossRate rate;
  REQUIRE(rate.handle_ack(128, 0, 1000));
  CHECK_FALSE(rate.handle_ack(128 + 999, 0, 1000));
  CHECK(rate.handle_ack(128 + 999, 1, 1000));
}

TEST_CASE("losses that have ended count less and less, and at once no longer as lasting") {
  Counted rail;
  rail.pass(5 * 128, 5, 4);
  REQUIRE(rail.rate.lasting() > 0.4);
  const double before = rail.rate.recent();
  rail.pass(128, 0, 4);
  CHECK(rail.rate.lasting() == 0);
  CHECK(rail.rate.recent() == Approx(before / 2).margin(0.02));
}

TEST_CASE("what was forgotten counts no longer") {
  Counted rail;
  rail.pass(5 * 128, 5, 4);
  rail.rate.forget();
  CHECK(rail.rate.lasting() == 0);
  CHECK(rail.rate.recent() == 0);
}

}  // namespace
}  // namespace pullman::failover
