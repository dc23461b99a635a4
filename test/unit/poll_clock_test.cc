#include "engine/nics/poll_clock.h"

#include <catch2/catch.hpp>

namespace pullman::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Turns {
  // A turn begins so much after the last one did.
  void turn(Duration later) { clock.begin_turn(now += later); }

  // Returns whether packets of this turn are said to have waited for so long.
  bool waited(Duration time) const {
    return clock.poll_gap() == wire::poll_gap_of(static_cast<std::uint64_t>(time.count()));
  }

  Instant now{seconds(1)};
  PollClock clock{now};
};

}  // namespace

TEST_CASE("a packet may have waited since the last turn, or since the program has watched") {
  Turns turns;
  turns.turn(microseconds(5));
  CHECK(turns.waited(microseconds(5)));
  CHECK(turns.clock.unpolled() == microseconds(5));

  turns.clock.watched(turns.now + milliseconds(3));
  turns.turn(milliseconds(4));
  CHECK(turns.waited(milliseconds(1)));
}

TEST_CASE("only a program that is often away for long is remembered for it") {
  const auto [away, times] =
      GENERATE(std::pair(microseconds(499), 100), std::pair(microseconds(500), 7));
  Turns turns;
  turns.now += seconds(10);
  turns.clock.watched(turns.now);
  for (int i = 0; i < times; ++i) turns.turn(away);
  CHECK_FALSE(turns.clock.absences().many(turns.now));

  turns.turn(microseconds(500));
  CHECK(turns.clock.absences().many(turns.now) == (times == 7));
}

TEST_CASE("no absence counts for more than 128 ms") {
  Turns turns;
  turns.turn(seconds(2));
  CHECK(turns.waited(milliseconds(128)));
  CHECK(turns.clock.unpolled() == milliseconds(128));
}

TEST_CASE("what is read behind an absence may have waited for all of it, until nothing is left") {
  Turns turns;
  turns.turn(milliseconds(2));
  turns.turn(microseconds(10));
  CHECK(turns.waited(microseconds(2010)));
  CHECK(turns.clock.unpolled() == microseconds(10));

  turns.clock.note_empty();
  turns.turn(microseconds(10));
  CHECK(turns.waited(microseconds(10)));
}

TEST_CASE("a second absence before all is read adds to the first") {
  Turns turns;
  turns.turn(milliseconds(2));
  turns.turn(milliseconds(3));
  turns.turn(microseconds(10));
  CHECK(turns.waited(microseconds(5010)));
}

TEST_CASE("who still finds packets after as long as the absence took is not fast enough") {
  Turns turns;
  turns.turn(milliseconds(1));
  for (int i = 0; i < 20; ++i) turns.turn(microseconds(50));
  CHECK(turns.waited(milliseconds(2)));
  turns.turn(microseconds(50));
  CHECK(turns.waited(microseconds(50)));
}

TEST_CASE("the turns of a program that polls all the time are no absence") {
  Turns turns;
  for (int i = 0; i < 5; ++i) turns.turn(microseconds(99));
  CHECK(turns.waited(microseconds(99)));
}

}  // namespace pullman::engine
