// nic/udp/refusals.h: what a full queue is told from.
#include "nic/udp/refusals.h"

#include <catch2/catch.hpp>

namespace pullman::nic::udp {
namespace {

constexpr Destination kOne{1};
constexpr Destination kOther{2};

// How often a packet for `to` is refused until it is given up.
int refused_until_given_up(Refusals& refusals, Destination to) {
  int times = 1;
  while (!refusals.close_abortively(to)) ++times;
  return times;
}

TEST_CASE("a packet that is refused again and again is given up, those behind it sooner") {
  Refusals refusals;
  CHECK(refused_until_given_up(refusals, kOne) == 128);
  CHECK(refused_until_given_up(refusals, kOne) == 8);
  CHECK(refused_until_given_up(refusals, kOther) == 128);
}

TEST_CASE("what has left for a destination begins its patience anew, for another nothing") {
  Refusals refusals;
  CHECK_FALSE(refusals.any());
  refused_until_given_up(refusals, kOne);
  CHECK(refusals.any());
  refusals.note_sent(kOther);
  CHECK(refused_until_given_up(refusals, kOne) == 8);
  refusals.note_sent(kOne);
  CHECK_FALSE(refusals.any());
  CHECK(refused_until_given_up(refusals, kOne) == 128);
}

TEST_CASE("bursts that are refused get shorter, and longer again after many calls") {
  BurstLimit limit(65000);
  CHECK_FALSE(limit.is_short());
  limit.halve();
  CHECK(limit.bytes() == 32500);
  for (int i = 0; i < 255; ++i) limit.note_sent();
  CHECK(limit.bytes() == 32500);
  limit.note_sent();
  CHECK(limit.bytes() == 65000);
  for (int i = 0; i < 20; ++i) limit.halve();
  CHECK(limit.bytes() == 1024);
  for (int i = 0; i < 10 * 256; ++i) limit.note_sent();
  CHECK(limit.bytes() == 65000);
}

}  // namespace
}  // namespace pullman::nic::udp
