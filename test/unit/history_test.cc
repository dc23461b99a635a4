#include "telemetry/history.h"

#include <catch2/catch.hpp>

namespace pullman::telemetry {
namespace {

using std::chrono::milliseconds;

struct Shown {
  // Rows are collected so much later; returns those of the peer.
  const PeerRow& collect(milliseconds later) {
    rows.errors.clear();
    now += later;
    history.complete(now, rows);
    return rows.peers.front();
  }

  // Returns whether the peer is waited for since the rows that are collected so much later.
  bool waits_from_now(milliseconds later) {
    const std::uint64_t since = collect(later).waits_since;
    return since == clock_count(now);
  }

  History history;
  Instant now{std::chrono::seconds(100)};
  Rows rows{.peers = {{.peer = 3, .unfinished_sends = 1}}, .rails = {{.peer = 3}}};
};

}  // namespace

TEST_CASE("a peer is waited for since the reason was first seen, while nothing goes on") {
  const auto reason = GENERATE(waits::kAcks, waits::kReceive);
  Shown shown;
  shown.rows.peers.front().waits_for = {reason};
  const std::uint64_t begin = shown.collect(milliseconds(0)).waits_since;
  CHECK(begin == clock_count(shown.now));
  CHECK(shown.collect(milliseconds(100)).waits_since == begin);
  CHECK(shown.rows.context.peers_waiting == 1);

  shown.rows.rails.front().packets_acked = 1;  // a message's, or that it lives
  CHECK((shown.collect(milliseconds(100)).waits_since == begin) == (reason == waits::kReceive));

  shown.rows.peers.front().unfinished_sends = 2;
  shown.rows.rails.front().packets_acked = 2;
  CHECK(shown.waits_from_now(milliseconds(100)));

  shown.rows.peers.front().waits_for = {waits::kCredit};
  CHECK(shown.waits_from_now(milliseconds(100)));

  shown.rows.peers.front().waits_for = {};
  shown.rows.peers.front().waits_since = 0;
  CHECK(shown.collect(milliseconds(100)).waits_since == 0);
  CHECK(shown.rows.context.peers_waiting == 0);
}

TEST_CASE("receives that name a peer wait since they were first seen, while they are the same") {
  Shown shown;
  const auto since = [&](std::uint64_t posted, std::uint64_t mark, milliseconds later) {
    shown.rows.peers.front().receives_posted = posted;
    shown.rows.peers.front().receives_since = 0;
    shown.rows.peers.front().receives_mark = mark;
    return shown.collect(later).receives_since;
  };
  CHECK(since(0, 0, milliseconds(0)) == 0);
  const std::uint64_t begin = since(1, 5, milliseconds(100));
  CHECK(begin == clock_count(shown.now));
  CHECK(since(1, 5, milliseconds(100)) == begin);
  const std::uint64_t next = since(1, 6, milliseconds(100));
  CHECK(next == clock_count(shown.now));
  CHECK(since(0, 0, milliseconds(100)) == 0);
  const std::uint64_t again = since(1, 6, milliseconds(100));
  CHECK(again == clock_count(shown.now));
}

TEST_CASE("another peer at the same number has not waited as long, nor lost anything") {
  Shown shown;
  shown.rows.peers.front().waits_for = {waits::kAcks};
  shown.rows.rails.front().lost = 2;
  shown.collect(milliseconds(0));
  shown.rows.peers.front().generation = 1;
  shown.rows.rails.front().generation = 1;
  CHECK(shown.waits_from_now(milliseconds(100)));
  CHECK(shown.rows.rails.front().first_lost == clock_count(shown.now));
}

TEST_CASE("a rail's losses have a first and a last time, and none without a loss") {
  Shown shown;
  RailRow& rail = shown.rows.rails.front();
  shown.collect(milliseconds(0));
  CHECK(rail.first_lost == 0);
  rail.lost = 1;
  shown.collect(milliseconds(100));
  const std::uint64_t first = clock_count(shown.now);
  CHECK(rail.first_lost == first);
  shown.collect(milliseconds(100));
  CHECK(rail.last_lost == first);
  rail.lost = 3;
  shown.collect(milliseconds(100));
  CHECK(rail.first_lost == first);
  CHECK(rail.last_lost == clock_count(shown.now));
}

TEST_CASE("an error that is a counter has a row once it has happened") {
  Shown shown;
  shown.collect(milliseconds(0));
  CHECK(shown.rows.errors.empty());
  shown.rows.context.stats.nic_receive_overflows = 5;
  shown.collect(milliseconds(100));
  const std::uint64_t first = clock_count(shown.now);
  shown.rows.context.stats.nic_receive_overflows = 6;
  shown.collect(milliseconds(100));
  REQUIRE(shown.rows.errors.size() == 1);
  CHECK(shown.rows.errors.front().kind.view() == "receive overflows");
  CHECK(shown.rows.errors.front().times == 6);
  CHECK(shown.rows.errors.front().first == first);
  CHECK(shown.rows.errors.front().last == clock_count(shown.now));
}

}  // namespace pullman::telemetry
