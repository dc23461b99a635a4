// reliability::ReplayWindow: past, expected, future, duplicate, wrapped.
#include "reliability/replay_window.h"

#include <catch2/catch.hpp>

namespace pullman::reliability {

TEST_CASE("a number is new once") {
  ReplayWindow window;
  for (PacketNumber number = 0; number < 300; ++number) {
    REQUIRE(window.is_new(number));
    window.note(number);
    REQUIRE_FALSE(window.is_new(number));
  }
}

TEST_CASE("a number that was overtaken is new while it is among the last 64") {
  ReplayWindow window;
  window.note(100);

  CHECK(window.is_new(37));
  CHECK_FALSE(window.is_new(36));
  window.note(37);
  CHECK_FALSE(window.is_new(37));
  CHECK(window.is_new(38));
  window.note(101);
  CHECK_FALSE(window.is_new(37));
  CHECK(window.is_new(38));
}

TEST_CASE("numbers that were skipped are new, those that came are not") {
  ReplayWindow window;
  for (const PacketNumber number : {3u, 5u, 6u, 70u}) window.note(number);

  for (PacketNumber number = 7; number < 200; ++number)
    CHECK(window.is_new(number) == (number != 70));
  CHECK_FALSE(window.is_new(6));  // beyond the 64
}

TEST_CASE("a number far ahead leaves nothing of the window") {
  ReplayWindow window;
  window.note(3);
  window.note(3 + 64);
  CHECK_FALSE(window.is_new(3));
  CHECK(window.is_new(4));
  window.note(1'000'000);
  CHECK_FALSE(window.is_new(67));
  CHECK(window.is_new(999'999));
}

TEST_CASE("the low bits of a number are expanded near the one expected") {
  ReplayWindow window;
  window.note((PacketNumber{1} << 32) - 2);

  CHECK(window.number_of(1) == (PacketNumber{1} << 32) + 1);
  CHECK(window.number_of(0xFFFFFFF0) == (PacketNumber{1} << 32) - 16);
}

}  // namespace pullman::reliability
