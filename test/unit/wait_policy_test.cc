#include "context/wait_policy.h"

#include <catch2/catch.hpp>
#include <utility>

namespace pullman {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Rest = WaitPolicy::Rest;

// A call that waits, whose turns take a microsecond each.
struct Call {
  explicit Call(Duration sleep_after = milliseconds(1)) : policy(sleep_after) {}

  Rest turn(std::size_t received = 0) {
    return policy.after_turn(now += microseconds(1), received, silence);
  }
  // Returns what the call does first that is not another turn, and the number of turns before.
  std::pair<Rest, int> first_rest() {
    for (int turns = 1;; ++turns) {
      if (const Rest rest = turn(); rest != Rest::kNone) return {rest, turns};
    }
  }

  Instant now{seconds(1)};
  WaitPolicy policy;
  WaitPolicy::Silence silence{.since = now};
};

}  // namespace

TEST_CASE("a call polls for a while before it yields, again after each arrival") {
  Call call;
  CHECK(call.first_rest() == std::pair(Rest::kYield, 128));
  CHECK(call.turn() == Rest::kYield);
  CHECK(call.turn(1) == Rest::kNone);
  CHECK(call.first_rest() == std::pair(Rest::kYield, 128));
}

TEST_CASE("beside others that poll a call yields soon") {
  Call call;
  call.policy.note_yield(call.now, microseconds(5));
  CHECK(call.first_rest() == std::pair(Rest::kYield, 8));
}

TEST_CASE("a call that has received nothing for sleep_after sleeps, unless that is 0") {
  Call call;
  while (call.now < call.silence.since + milliseconds(1) - microseconds(1)) {
    CHECK(call.turn() != Rest::kSleep);
  }
  CHECK(call.turn() == Rest::kSleep);

  Call never{Duration(0)};
  for (int i = 0; i < 5000; ++i) CHECK(never.turn() != Rest::kSleep);
}

TEST_CASE("beside others that compute a call naps instead of yielding, and instead of sleeping") {
  Call call;
  call.policy.note_yield(call.now, milliseconds(3));
  CHECK(call.first_rest() == std::pair(Rest::kNap, 128));
  while (call.now < call.silence.since + milliseconds(2)) CHECK(call.turn() == Rest::kNap);

  call.policy.note_yield(call.now, microseconds(5));  // beside others that poll, too
  call.turn(1);
  CHECK(call.first_rest() == std::pair(Rest::kNap, 8));
}

TEST_CASE("a call that has napped yields again after a while, to find out whether others compute") {
  Call call;
  call.policy.note_yield(call.now, milliseconds(3));
  call.now += milliseconds(4);
  call.turn(1);
  CHECK(call.first_rest() == std::pair(Rest::kYield, 128));
}

}  // namespace pullman
