// What pullman-perf --test failover counts, and which cuts it accepts.
#include <algorithm>
#include <catch2/catch.hpp>

#include "perf/arrivals.h"
#include "perf/cuts.h"

using namespace perf;
using namespace std::chrono_literals;

namespace {

const Clock::time_point kStart{1h};

Roll roll_of(std::initializer_list<std::uint64_t> numbers) {
  Roll roll;
  for (const std::uint64_t number : numbers) roll.note(number);
  return roll;
}

}  // namespace

TEST_CASE("messages that come once and in order count as no error") {
  const Roll roll = roll_of({0, 1, 2, 3});

  CHECK(roll.lost(4) == 0);
  CHECK(roll.duplicated() == 0);
  CHECK(roll.misordered() == 0);
}

TEST_CASE("messages that never came are lost, wherever they are") {
  const Roll roll = roll_of({1, 2, 5});

  CHECK(roll.lost(8) == 5);
  CHECK(roll.misordered() == 0);
}

TEST_CASE("a message that comes after a later one is misordered, and not lost") {
  const Roll roll = roll_of({0, 4, 2, 1, 3});

  CHECK(roll.misordered() == 3);
  CHECK(roll.lost(5) == 0);
  CHECK(roll.duplicated() == 0);
}

TEST_CASE("a message that comes twice is a duplicate, at once or later") {
  const Roll roll = roll_of({0, 0, 1, 4, 3, 3, 1});

  CHECK(roll.duplicated() == 3);
  CHECK(roll.misordered() == 1);
  CHECK(roll.lost(5) == 1);
}

TEST_CASE("a duplicate does not make up for a loss") {
  CHECK(roll_of({0, 0, 0}).lost(3) == 2);
}

TEST_CASE("a gap is counted in the interval in which it ended") {
  Buckets buckets(kStart);

  buckets.add(kStart + 1ms, 100);
  buckets.add(kStart + 2ms, 100);
  buckets.add(kStart + 35ms, 50);

  REQUIRE(buckets.all().size() == 4);
  CHECK(buckets.all()[0].bytes == 200);
  CHECK(buckets.all()[0].gap_us == 1000);
  CHECK(buckets.all()[0].gap_end_us == 2000);
  CHECK(buckets.all()[1].bytes == 0);
  CHECK(buckets.all()[3].bytes == 50);
  CHECK(buckets.all()[3].gap_us == 33000);
  CHECK(buckets.all()[3].gap_end_us == 5000);
}

TEST_CASE("messages before the start, or hours later, are not counted") {
  Buckets buckets(kStart);

  buckets.add(kStart - 1s, 1);
  buckets.add(kStart + 100h, 1);

  CHECK(buckets.all().size() == 1);
}

TEST_CASE("a cut names a NIC, its kind and its times") {
  const Cut cut = parse_cut("eth1:deaf@1.5-2");

  CHECK(cut.nic == "eth1");
  CHECK(cut.kind == CutKind::kDeaf);
  CHECK(cut.at == 1500ms);
  CHECK(cut.mended_at == std::optional<std::chrono::nanoseconds>(2s));
  CHECK(parse_cut("eth1@3").kind == CutKind::kLink);
  CHECK_FALSE(parse_cut("eth1@3").mended_at);
}

TEST_CASE("malformed cuts are refused") {
  for (const char* text : {"", "eth1", "@1", "eth1@", "eth1@x", "eth1@2-1", "eth1@1-1", "eth1@-1",
                           "eth1:blind@1", "eth1:@1", "eth 1@1", "eth\"@1", "eth1@nan",
                           "eth1@1-2-3", "eth1@1e9", "averyverylongname@1"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_cut(text), Failure);
  }
}

TEST_CASE("a NIC may be cut again from when it was mended") {
  const std::vector<Cut> cuts = parse_cuts({"b@3-4", "a@1-2", "a@2-3", "b:mute@1-2"});

  REQUIRE(cuts.size() == 4);
  CHECK(std::is_sorted(cuts.begin(), cuts.end(),
                       [](const Cut& a, const Cut& b) { return a.at < b.at; }));
}

TEST_CASE("cuts of one NIC that overlap are refused") {
  CHECK_THROWS_AS(parse_cuts({"a@1-3", "a:deaf@2-4"}), Failure);
  CHECK_THROWS_AS(parse_cuts({"a@1", "a@2-4"}), Failure);
}
