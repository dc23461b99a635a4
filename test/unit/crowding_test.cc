#include "base/crowding.h"

#include <catch2/catch.hpp>

namespace pullman {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Instant kNow{std::chrono::seconds(1)};
constexpr Duration kTimeSlice = milliseconds(3);

}  // namespace

TEST_CASE("a yield that returns at once says that nobody else wants the processor") {
  Crowding crowding;
  crowding.note_yield(kNow, Duration(400));
  CHECK_FALSE(crowding.others_poll(kNow));
  CHECK_FALSE(crowding.others_compute(kNow));
}

TEST_CASE("a yield that lets another poller in says so for a while") {
  Crowding crowding;
  crowding.note_yield(kNow, microseconds(5));
  CHECK(crowding.others_poll(kNow));
  CHECK_FALSE(crowding.others_compute(kNow));
  CHECK_FALSE(crowding.others_poll(kNow + milliseconds(1)));
}

TEST_CASE("a yield that takes a time slice says that others compute, longer each time") {
  Crowding crowding;
  Instant now = kNow;
  for (const auto pause : {4, 8, 16, 32, 64, 128, 256, 256}) {
    crowding.note_yield(now, kTimeSlice);
    CHECK(crowding.others_compute(now + milliseconds(pause) - Duration(1)));
    now += milliseconds(pause);
    CHECK_FALSE(crowding.others_compute(now));
  }
}

TEST_CASE("others that have not computed for long are taken for ones that seldom do") {
  Crowding crowding;
  crowding.note_yield(kNow, kTimeSlice);
  crowding.note_yield(kNow + milliseconds(4), kTimeSlice);
  const Instant later = kNow + milliseconds(4 + 8 + 8);
  crowding.note_yield(later, kTimeSlice);
  CHECK_FALSE(crowding.others_compute(later + milliseconds(4)));
}

}  // namespace pullman
