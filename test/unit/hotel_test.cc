// reliability/hotel.h: floors, evictions, occupancy.
#include "reliability/hotel.h"

#include <catch2/catch.hpp>

namespace pullman::reliability {
namespace {

struct Someone : Guest {};

constexpr Instant at(std::int64_t us) {
  return Instant(std::chrono::microseconds(us));
}

}  // namespace

TEST_CASE("a timeout is rounded up to that of a floor, by a quarter at most") {
  using TheHotel = Hotel<Someone>;
  for (std::int64_t ns = 1; ns < 20'000'000'000; ns += 1 + ns / 7) {
    const Duration stay = TheHotel::stay_of(TheHotel::floor_for(Duration(ns)));
    REQUIRE(stay >= Duration(ns));
    REQUIRE(stay <= Duration(std::max<std::int64_t>(ns + ns / 4 + 1024, 1024)));
  }
  CHECK(TheHotel::floor_for(std::chrono::hours(1000)) == TheHotel::kFloors - 1);
}

TEST_CASE("guests are evicted when their stay is over, not before, and each once") {
  Hotel<Someone> hotel;
  Someone brief;
  Someone patient;
  hotel.check_in(at(0), std::chrono::microseconds(1000), patient);
  hotel.check_in(at(0), std::chrono::microseconds(10), brief);

  CHECK(hotel.guests() == 2);
  CHECK(hotel.next_due() == brief.due);
  CHECK(hotel.evict(brief.due - Duration(1)) == nullptr);
  CHECK(hotel.evict(brief.due) == &brief);
  CHECK(hotel.evict(brief.due) == nullptr);
  CHECK(hotel.next_due() == patient.due);
  CHECK(hotel.evict(patient.due) == &patient);
  CHECK(hotel.guests() == 0);
  CHECK(hotel.next_due() == kNever);
}

TEST_CASE("a guest that checks out is not evicted, and its floor may empty") {
  Hotel<Someone> hotel;
  Someone a;
  Someone b;
  Someone c;
  for (Someone* guest : {&a, &b, &c}) hotel.check_in(at(5), std::chrono::microseconds(100), *guest);

  hotel.check_out(b);
  CHECK_FALSE(b.checked_in());
  CHECK(hotel.evict(at(1000)) == &a);
  CHECK(hotel.evict(at(1000)) == &c);
  CHECK(hotel.evict(at(1000)) == nullptr);
}

TEST_CASE("a floor is first come, first evicted") {
  Floor<Someone> floor(std::chrono::microseconds(50));
  Someone first;
  Someone second;
  floor.check_in(at(0), first);
  floor.check_in(at(1), second);

  CHECK(floor.next_due() == at(50));
  CHECK(floor.evict(at(49)) == nullptr);
  CHECK(floor.evict(at(51)) == &first);
  CHECK(floor.evict(at(51)) == &second);
  CHECK(floor.empty());
}

}  // namespace pullman::reliability
