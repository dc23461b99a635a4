// The bounds of congestion control: scenarios of the lab (bench/plot), shortened. With virtual time
// and one seed the figures are the same on any machine; the bounds leave room for other rules.
#include "plot/lab.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace pullman::lab {
namespace {

constexpr double kGigabit = 915;      // Mb/s of messages that 1 Gb/s can carry
constexpr double kTenGigabit = 9150;  // and that 10 Gb/s can carry

Outcome outcome_of(std::string_view name, std::int64_t ms) {
  for (Scenario& scenario : scenarios()) {
    if (scenario.name != name) continue;
    scenario.duration = std::chrono::milliseconds(ms);
    return run(scenario, 1);
  }
  FAIL("no such scenario");
  return {};
}

void resends_only_what_was_lost(const Outcome& outcome) {
  CHECK(outcome.spurious == 0);
  CHECK(outcome.socket_drops == 0);
}

}  // namespace

TEST_CASE("one flow alone fills the link without a retransmission") {
  const Outcome outcome = outcome_of("clean", 20);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
  CHECK(outcome.timeouts <= 2);  // each is a probe while the window opens
}

TEST_CASE("of two flows the later one gets an equal share, and the queue stays short") {
  const Outcome outcome = outcome_of("two", 500);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 100'000);  // of a megabyte: 0.8 ms
  CHECK(outcome.retransmits == 0);
}

TEST_CASE("sixteen flows share the link equally without a drop") {
  const Outcome outcome = outcome_of("sixteen", 200);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
}

TEST_CASE("64 senders to one receiver share the link without a collapse") {
  const Outcome outcome = outcome_of("incast", 80);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.queue_bytes < 900'000);  // only the first round overflows the megabyte
  CHECK(outcome.queue_drops < 64 * 16);
  resends_only_what_was_lost(outcome);
}

TEST_CASE("64 senders through a gigabit link share it, and the queue stays short") {
  const Outcome outcome = outcome_of("incast-slow", 1000);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 150'000);  // one packet of each is 100'000
  resends_only_what_was_lost(outcome);
}

TEST_CASE(
    "64 senders that poll once in 800 us, as many threads of one process do, share a gigabit") {
  const Outcome outcome = outcome_of("incast-late", 1000);
  CHECK(outcome.fairness >= 0.85);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 200'000);
  resends_only_what_was_lost(outcome);
}

TEST_CASE("64 senders through a switch that holds 100 packets share the link, too") {
  const Outcome outcome = outcome_of("incast-shallow", 200);
  CHECK(outcome.fairness >= 0.9);
  CHECK(outcome.goodput_mbps >= 0.9 * kTenGigabit);
  resends_only_what_was_lost(outcome);
}

TEST_CASE(
    "a switch with little memory is kept busy, and loses little beyond the opening of the window") {
  const Outcome outcome = outcome_of("shallow", 200);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_drops < 500);  // of 16,000, most in the first milliseconds
  resends_only_what_was_lost(outcome);
}

TEST_CASE("the queue of a switch with much memory is kept short") {
  const Outcome outcome = outcome_of("deep", 200);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.deepest_queue < 200'000);  // of 4 MB
}

TEST_CASE("random loss costs little more than the lost packets") {
  const double clean = outcome_of("clean", 20).goodput_mbps;

  const Outcome one = outcome_of("loss-1", 60);
  const Outcome five = outcome_of("loss-5", 60);

  CHECK(one.goodput_mbps >= 0.9 * clean);
  CHECK(five.goodput_mbps >= 0.8 * clean);
  resends_only_what_was_lost(one);
  resends_only_what_was_lost(five);
}

TEST_CASE("a path of a millisecond is filled, and half filled at 5 % loss") {
  CHECK(outcome_of("far", 100).goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome_of("far-loss-5", 200).goodput_mbps >= 0.5 * kTenGigabit);
}

TEST_CASE("reordering widens the reordering window: only a few retransmissions are spurious") {
  const Outcome outcome = outcome_of("reordering", 100);
  CHECK(outcome.goodput_mbps >= 0.9 * kTenGigabit);
  CHECK(outcome.spurious < 100);  // of 80,000, of which 1,600 came late
  CHECK(outcome.retransmits == outcome.spurious);
}

// The delay that a turn of the loop adds is no congestion: else the end with the shorter turns
// would fall to a window of a few packets, and stay there.
TEST_CASE("traffic both ways gives each way its share, however long the turns are") {
  for (const char* name : {"both-ways", "both-ways-dear", "both-ways-long"}) {
    INFO(name);
    const Outcome outcome = outcome_of(name, 400);
    CHECK(outcome.least_share >= 0.7);
    CHECK(outcome.retransmits == 0);
  }
}

TEST_CASE("in a ring, and all to all, each flow gets its share") {
  for (const char* name : {"ring", "all-to-all"}) {
    INFO(name);
    const Outcome outcome = outcome_of(name, 2000);  // the second half counts
    CHECK(outcome.fairness >= 0.95);
    resends_only_what_was_lost(outcome);
  }
}

TEST_CASE("hosts that stall for a millisecond cause neither congestion nor loss") {
  const Outcome outcome = outcome_of("busy", 100);
  CHECK(outcome.goodput_mbps >= 0.8 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
}

}  // namespace pullman::lab
