// What congestion control must come to: scenarios of the lab (bench/plot), shortened. Virtual time
// and one seed: the figures are the same on any machine, the bounds have room for other rules.
#include "plot/lab.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace pullman::lab {
namespace {

constexpr double kGigabit = 915;      // what 1 Gb/s can carry of messages
constexpr double kTenGigabit = 9150;  // and 10 Gb/s

Outcome outcome_of(std::string_view name, std::int64_t ms) {
  for (Scenario& scenario : scenarios()) {
    if (scenario.name != name) continue;
    scenario.duration = std::chrono::milliseconds(ms);
    return run(scenario, 1);
  }
  FAIL("no such scenario");
  return {};
}

void resends_nothing_in_vain(const Outcome& outcome) {
  CHECK(outcome.spurious == 0);
  CHECK(outcome.socket_drops == 0);
}

}  // namespace

TEST_CASE("one flow alone fills the road and sends nothing again") {
  const Outcome outcome = outcome_of("clean", 20);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
  CHECK(outcome.timeouts <= 2);  // each is a question, while the window opens
}

TEST_CASE("of two flows the later one comes to an equal share, and the queue stays short") {
  const Outcome outcome = outcome_of("two", 500);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 100'000);  // of a megabyte: 0.8 ms
  CHECK(outcome.retransmits == 0);
}

TEST_CASE("sixteen flows share, and nothing is dropped") {
  const Outcome outcome = outcome_of("sixteen", 200);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
}

TEST_CASE("64 senders to one receiver share without a collapse") {
  const Outcome outcome = outcome_of("incast", 80);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome.queue_bytes < 900'000);  // the first round overflows a megabyte, no other does
  CHECK(outcome.queue_drops < 64 * 16);
  resends_nothing_in_vain(outcome);
}

TEST_CASE("64 senders through a gigabit share, and the queue stays short") {
  const Outcome outcome = outcome_of("incast-slow", 1000);
  CHECK(outcome.fairness >= 0.95);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 150'000);  // a packet of each is 100'000
  resends_nothing_in_vain(outcome);
}

TEST_CASE("64 senders share through a gigabit that look once in 800 us, as one process's do") {
  const Outcome outcome = outcome_of("incast-late", 1000);
  CHECK(outcome.fairness >= 0.85);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_bytes < 200'000);
  resends_nothing_in_vain(outcome);
}

TEST_CASE("64 senders through a switch that holds 100 packets share, too") {
  const Outcome outcome = outcome_of("incast-shallow", 200);
  CHECK(outcome.fairness >= 0.9);
  CHECK(outcome.goodput_mbps >= 0.9 * kTenGigabit);
  resends_nothing_in_vain(outcome);
}

TEST_CASE("a switch with little memory is filled, and loses little beyond what opened the window") {
  const Outcome outcome = outcome_of("shallow", 200);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.queue_drops < 500);  // of 16,000, most of them in the first milliseconds
  resends_nothing_in_vain(outcome);
}

TEST_CASE("a switch with much memory is not filled") {
  const Outcome outcome = outcome_of("deep", 200);
  CHECK(outcome.goodput_mbps >= 0.95 * kGigabit);
  CHECK(outcome.deepest_queue < 200'000);  // of 4 MB
}

TEST_CASE("random loss costs little more than what is lost") {
  const double clean = outcome_of("clean", 20).goodput_mbps;

  const Outcome one = outcome_of("loss-1", 60);
  const Outcome five = outcome_of("loss-5", 60);

  CHECK(one.goodput_mbps >= 0.9 * clean);
  CHECK(five.goodput_mbps >= 0.8 * clean);
  resends_nothing_in_vain(one);
  resends_nothing_in_vain(five);
}

TEST_CASE("a path of a millisecond is filled, and half so when a packet in twenty is lost") {
  CHECK(outcome_of("far", 100).goodput_mbps >= 0.95 * kTenGigabit);
  CHECK(outcome_of("far-loss-5", 200).goodput_mbps >= 0.5 * kTenGigabit);
}

TEST_CASE(
    "reordering makes patience grow: a few packets are sent again in vain, not a part of all") {
  const Outcome outcome = outcome_of("reordering", 100);
  CHECK(outcome.goodput_mbps >= 0.9 * kTenGigabit);
  CHECK(outcome.spurious < 100);  // of 80,000, of which 1,600 came late
  CHECK(outcome.retransmits == outcome.spurious);
}

// The delay that a turn of the loop makes is neither end's congestion: else the end with the
// shorter turns falls to a window of a few packets, and stays there.
TEST_CASE("both ways at once, each way gets its share, however long the turns are") {
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
    const Outcome outcome = outcome_of(name, 2000);  // of which the second second counts
    CHECK(outcome.fairness >= 0.95);
    resends_nothing_in_vain(outcome);
  }
}

TEST_CASE("hosts that stand still for a millisecond are no congestion and no loss") {
  const Outcome outcome = outcome_of("busy", 100);
  CHECK(outcome.goodput_mbps >= 0.8 * kTenGigabit);
  CHECK(outcome.retransmits == 0);
}

}  // namespace pullman::lab
