#include "engine/frames/standstill.h"

#include <catch2/catch.hpp>

namespace pullman::engine {
namespace {

using Found = Standstill::Found;

// Looks when the next look is due.
Found look(Standstill& standstill, const Standstill::Movement& movement) {
  return standstill.look(standstill.due(), movement);
}

}  // namespace

TEST_CASE("a program stands still after a number of looks without any movement") {
  Standstill standstill;
  standstill.begin(Instant(Duration(0)), 7);

  for (unsigned i = 1; i < Standstill::kLooks; ++i) {
    REQUIRE(look(standstill, {.done = 7}) == Found::kMoving);
  }
  CHECK(look(standstill, {.done = 7}) == Found::kStanding);

  for (unsigned i = 1; i < Standstill::kLooks; ++i) {
    REQUIRE(look(standstill, {.done = 7}) == Found::kMoving);
  }
  CHECK(look(standstill, {.done = 7}) == Found::kStillStanding);
}

TEST_CASE("movement at one look makes the count of looks begin again") {
  const Standstill::Movement moves =
      GENERATE(Standstill::Movement{.done = 8}, Standstill::Movement{.done = 7, .under_way = true});
  Standstill standstill;
  standstill.begin(Instant(Duration(0)), 7);
  for (unsigned i = 1; i < Standstill::kLooks; ++i) look(standstill, {.done = 7});

  REQUIRE(look(standstill, moves) == Found::kMoving);

  for (unsigned i = 1; i < Standstill::kLooks; ++i) {
    REQUIRE(look(standstill, {.done = moves.done}) == Found::kMoving);
  }
  CHECK(look(standstill, {.done = moves.done}) == Found::kStanding);
}

}  // namespace pullman::engine
