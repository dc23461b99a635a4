// nic/udp/refusals.h: what tells a packet that is always refused from a full queue.
#include "nic/udp/refusals.h"

#include <catch2/catch.hpp>

namespace pullman::nic::udp {
namespace {

constexpr Destination kOne{1};
constexpr Destination kOther{2};

// Returns how often a packet for `to` is refused until it is given up.
int refused_until_given_up(Refusals& refusals, Destination to) {
  int times = 1;
  while (!refusals.close_abortively(to)) ++times;
  return times;
}

TEST_CASE("a packet that is always refused is given up, and those behind it sooner") {
  Refusals refusals;
  CHECK(refused_until_given_up(refusals, kOne) == 128);
  CHECK(refused_until_given_up(refusals, kOne) == 8);
  CHECK(refused_until_given_up(refusals, kOther) == 128);
}

TEST_CASE("a packet that leaves for a destination clears its refusals, not another's") {
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

TEST_CASE("bursts that are refused get shorter, and longer again after many sends") {
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
