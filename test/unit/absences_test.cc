#include "failover/absences.h"

#include <catch2/catch.hpp>

namespace pullman::failover {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(10)};

Absences many_until(Instant& now, Duration apart) {
  Absences out;
  for (int i = 0; i < 8; ++i) {
    now += apart;
    out.note(now);
  }
  return out;
}

}  // namespace

TEST_CASE("eight absences are many, for a second") {
  Instant now = kStart;
  const Absences absences = many_until(now, milliseconds(12));
  CHECK(absences.many(now));
  CHECK(absences.many(now + milliseconds(999)));
  CHECK_FALSE(absences.many(now + seconds(1)));
}

TEST_CASE("absences far from each other, or told of in several packets, are not many") {
  const Duration apart = GENERATE(Duration(milliseconds(125)), Duration(microseconds(400)));
  Instant now = kStart;
  const Absences absences = many_until(now, apart);
  CHECK_FALSE(absences.many(now));
}

TEST_CASE("a poll gap that may be as short as a turn is no absence") {
  const auto gap = [](Duration time) {
    return wire::poll_gap_of(static_cast<std::uint64_t>(time.count()));
  };
  CHECK_FALSE(Absences::is_long(gap(microseconds(300))));
  CHECK(Absences::is_long(gap(microseconds(600))));
  CHECK(Absences::is_long(wire::PollGap::kLongest));
}

}  // namespace pullman::failover
