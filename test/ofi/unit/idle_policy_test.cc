#include "ofi/idle_policy.h"

#include <catch2/catch.hpp>

namespace pullman::ofi::test {
namespace {

using Rest = IdlePolicy::Rest;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A thread that polls and finds nothing, once in `gap`.
struct Poller {
  // Polls until it is to rest; returns how.
  Rest poll_until_rest(int most) {
    for (polls = 1; polls <= most; ++polls) {
      now += gap;
      if (const Rest rest = policy.due(true, [this] { return now; }); rest != Rest::kNone) {
        return rest;
      }
    }
    return Rest::kNone;
  }
  void yield(Duration took) {
    now += took;
    policy.note_yield(now, took);
  }

  IdlePolicy policy{true};
  Duration gap = microseconds(1);
  Instant now{std::chrono::seconds(1)};
  int polls = 0;
};

}  // namespace

TEST_CASE("a thread that finds nothing yields after 64 polls, where others poll after 2") {
  Poller poller;
  CHECK(poller.poll_until_rest(1000) == Rest::kYield);
  CHECK(poller.polls == 64);
  poller.yield(microseconds(5));
  poller.policy.due(false, [&] { return poller.now; });
  CHECK(poller.poll_until_rest(1000) == Rest::kYield);
  CHECK(poller.polls == 2);
  CHECK(poller.poll_until_rest(1000) == Rest::kYield);
  CHECK(poller.polls == 2);
}

TEST_CASE("a thread that is idle for long beside others that poll naps, until something comes") {
  Poller poller;
  poller.poll_until_rest(1000);
  const auto yield_for = [&](Duration time) {
    for (const Instant end = poller.now + time; poller.now < end;) {
      poller.yield(microseconds(5));
      if (poller.poll_until_rest(1000) == Rest::kNap) return false;
    }
    return true;
  };
  CHECK_FALSE(yield_for(milliseconds(1)));
  poller.policy.due(false, [&] { return poller.now; });
  CHECK(yield_for(microseconds(400)));
  CHECK_FALSE(yield_for(microseconds(200)));
}

TEST_CASE("a thread that finds nothing naps where others compute, until they may have ended") {
  Poller poller;
  poller.poll_until_rest(1000);
  poller.yield(milliseconds(3));
  CHECK(poller.poll_until_rest(1000) == Rest::kNap);
  poller.now += milliseconds(4);
  CHECK(poller.poll_until_rest(1000) == Rest::kYield);
}

TEST_CASE("a thread that computes between its polls does not nap") {
  Poller poller;
  poller.poll_until_rest(1000);
  poller.yield(milliseconds(3));
  poller.gap = microseconds(20);
  CHECK(poller.poll_until_rest(150) == Rest::kNone);
}

TEST_CASE("a thread that is not to give way does not") {
  IdlePolicy policy(false);
  for (int i = 0; i < 1000; ++i) {
    CHECK(policy.due(true, [] { return Instant(); }) == Rest::kNone);
  }
}

}  // namespace pullman::ofi::test
