// Each system call of the drivers on kernel sockets fails once, and some repeatedly: two contexts
// in this process still exchange messages, each exactly once, or the reason is reported.
#include "context/failing_calls.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "context/exchange.h"

namespace pullman::test {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

struct Outcome {
  bool refused = false;  // a context could not be made
  std::string why;
  bool worked = false;
};

Outcome try_all(const std::string& driver) {
  Outcome outcome;
  try {
    Exchange exchange(config_of(driver));
    outcome.worked = exchange.works();
    if (!outcome.worked) UNSCOPED_INFO(exchange.dump());
    outcome.worked = exchange.closes() && outcome.worked;
  } catch (const Error& error) {
    outcome.refused = true;
    outcome.why = error.what();
  }
  return outcome;
}

const std::array<const char*, 2> kDrivers = {"udp", "tcp"};

// Each system call of the start of two contexts, or one of so many, fails once with the error of
// that number.
void start_with_failures(const std::string& driver, std::size_t variant, long step = 1) {
  const Outcome first = try_all(driver);  // opens what a process opens once
  REQUIRE(first.worked);
  const std::size_t descriptors = open_descriptors();

  for (long nth = 0;; nth += step) {
    CAPTURE(driver, variant, nth);
    Outcome outcome;
    Call failed{};
    bool any = false;
    try {
      std::optional<Failing> failing;
      failing.emplace(Failing::Order{.nth = nth, .variant = variant});
      Exchange exchange(config_of(driver));
      any = Failing::failed() != 0;
      failed = Failing::last();
      failing.reset();
      outcome.worked = exchange.works();
      if (!outcome.worked) UNSCOPED_INFO(exchange.dump());
      outcome.worked = exchange.closes() && outcome.worked;
    } catch (const Error& error) {
      any = Failing::failed() != 0;
      failed = Failing::last();
      outcome.refused = true;
      outcome.why = error.what();
    }
    CAPTURE(name(failed), outcome.why);
    CHECK(outcome.refused != outcome.worked);
    if (outcome.refused) CHECK(outcome.why.size() > 20);
    CHECK(open_descriptors() == descriptors);
    if (!any) break;
    REQUIRE(nth < 2000);
  }
}

TEST_CASE(
    "if one of four system calls of a start fails once, the start works without it or reports the "
    "reason",
    "[start]") {
  start_with_failures(GENERATE(from_range(kDrivers)), 0, 4);
}

TEST_CASE("the same is true of every system call of a start, and of its other errors",
          "[.][long]") {
  start_with_failures(GENERATE(from_range(kDrivers)), GENERATE(0u, 1u));
}

TEST_CASE("if any system call of an exchange fails once, every message still arrives once",
          "[exchange]") {
  const std::string driver = GENERATE(from_range(kDrivers));
  const auto call = static_cast<Call>(GENERATE(range(0, static_cast<int>(kCalls))));
  REQUIRE(try_all(driver).worked);
  const std::size_t descriptors = open_descriptors();

  for (std::size_t variant = 0; variant < errors_of(call).size(); ++variant) {
    for (long nth = 0; nth < 200; nth += 1 + nth / 4) {
      CAPTURE(driver, name(call), errors_of(call)[variant], nth);
      bool reached = false;
      {
        Exchange exchange(config_of(driver));
        const Failing failing(call, {.nth = nth, .variant = variant});
        const bool worked = exchange.works();
        reached = Failing::failed() != 0;
        if (!worked) UNSCOPED_INFO(exchange.dump());
        CHECK(worked);
        CHECK(exchange.closes());
      }
      CHECK(open_descriptors() == descriptors);
      if (!reached) break;
    }
  }
}

TEST_CASE("system calls that fail repeatedly delay messages, but lose none") {
  const std::string driver = GENERATE(from_range(kDrivers));
  const auto call = GENERATE(Call::kSend, Call::kReceive, Call::kPoll, Call::kWaitEpoll,
                             Call::kRead, Call::kChangeEpoll);
  const long every = GENERATE(3, 7);
  for (std::size_t variant = 0; variant < errors_of(call).size(); ++variant) {
    // A TCP connection promises that nothing is lost, and is made again when it ends: not often
    // enough if it ends at every third packet.
    const int error = errors_of(call)[variant];
    const bool ends_connections = driver == "tcp" && error != EAGAIN && error != EINTR &&
                                  error != ENOBUFS &&
                                  (call == Call::kSend || call == Call::kReceive);
    if (ends_connections) continue;
    CAPTURE(driver, name(call), error, every);
    Exchange exchange(config_of(driver));
    const Failing failing(call, {.nth = 2, .every = every, .variant = variant});
    const bool worked = exchange.works();
    if (!worked) UNSCOPED_INFO(exchange.dump());
    CHECK(worked);
    CHECK(exchange.closes());
  }
}

TEST_CASE("with an unusable socket all requests end within the peer timeout") {
  const std::string driver = GENERATE(from_range(kDrivers));
  const auto call = GENERATE(Call::kSend, Call::kReceive);
  CAPTURE(driver, name(call));
  const std::size_t descriptors = open_descriptors();
  {
    Exchange exchange(config_of(driver));
    const Failing failing(call, {.nth = 0, .every = 1, .error = EBADF});
    const bool ends = exchange.ends();
    if (!ends) UNSCOPED_INFO(exchange.dump());
    CHECK(ends);
    CHECK(Failing::failed() > 0);
    CHECK(exchange.closes());
  }
  CHECK(open_descriptors() == descriptors);
}

}  // namespace
}  // namespace pullman::test
