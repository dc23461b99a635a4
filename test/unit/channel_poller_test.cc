#include "engine/nics/channel_poller.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

using std::chrono::microseconds;

// NIC 0 is busy on its command channel.
struct Polled {
  explicit Polled(std::size_t count) : Polled(devices(count, ipv4)) {}
  explicit Polled(const std::vector<nic::Device>& devices) : nics(devices) {
    for (std::size_t slot = 0; slot < devices.size(); ++slot) {
      poller.add(slot, !nics.table.is_further_address(slot));
    }
  }
  const Channel& channel(std::size_t slot, ChannelKind kind) const {
    return nics.table.channel(slot, kind);
  }
  std::uint32_t both(std::size_t slot) const {
    return channel(slot, ChannelKind::kCommand).mark() | channel(slot, ChannelKind::kData).mark();
  }
  std::uint32_t busy() const { return channel(0, ChannelKind::kCommand).mark(); }
  void fall_silent() {
    nics.table.for_each_channel([this](const Channel& one) {
      if (one.mark() != busy()) poller.note_quiet(now, one);
    });
  }
  std::uint32_t due_after(Duration by) { return poller.due(now += by); }

  FakeNics nics;
  ChannelPoller poller{nics.table};
  Instant now{std::chrono::seconds(1)};
};

}  // namespace

TEST_CASE("all channels are polled every turn if none is quiet, or all are") {
  Polled polled(2);
  CHECK(polled.due_after({}) == polled.nics.table.all_channels());

  polled.fall_silent();
  polled.poller.note_quiet(polled.now, polled.channel(0, ChannelKind::kCommand));
  CHECK(polled.due_after({}) == polled.nics.table.all_channels());
  CHECK(polled.due_after({}) == polled.nics.table.all_channels());
}

TEST_CASE("a quiet channel is polled again after an eighth of its silence and not sooner") {
  Polled polled(1);
  polled.fall_silent();
  REQUIRE(polled.due_after(microseconds(80)) == polled.both(0));

  CHECK(polled.due_after(microseconds(10) - Duration(1)) == polled.busy());
  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a quiet channel rests for 4 us at least, and for 32 us at most") {
  Polled polled(1);
  polled.fall_silent();
  REQUIRE(polled.due_after({}) == polled.both(0));
  CHECK(polled.due_after(microseconds(4) - Duration(1)) == polled.busy());
  CHECK(polled.due_after(Duration(1)) == polled.both(0));

  REQUIRE(polled.due_after(std::chrono::seconds(1)) == polled.both(0));
  CHECK(polled.due_after(microseconds(32) - Duration(1)) == polled.busy());
  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a quiet channel rests for 32 us while turns bring packets") {
  Polled polled(1);
  polled.fall_silent();
  REQUIRE(polled.due_after({}) == polled.both(0));
  polled.poller.end_turn(1);

  CHECK(polled.due_after(microseconds(32) - Duration(1)) == polled.busy());
  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a quiet channel rests for 128 us while bursts leave") {
  Polled polled(1);
  polled.fall_silent();
  REQUIRE(polled.due_after({}) == polled.both(0));

  polled.poller.note_burst_sent(polled.now);
  CHECK(polled.due_after(microseconds(100)) == polled.busy());
  polled.poller.note_burst_sent(polled.now);
  CHECK(polled.due_after(microseconds(28) - Duration(1)) == polled.busy());
  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a quiet channel that brings something is polled every turn again") {
  Polled polled(1);
  polled.fall_silent();
  REQUIRE(polled.due_after({}) == polled.both(0));
  REQUIRE(polled.due_after(Duration(1)) == polled.busy());

  polled.poller.note_active(NicTable::place_of(0, ChannelKind::kData));

  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a NIC that is quiet altogether rests for longer than the quiet channel of a busy one") {
  Polled polled(2);
  polled.fall_silent();
  const std::uint32_t all = polled.both(0) | polled.both(1);
  REQUIRE(polled.due_after({}) == all);

  CHECK(polled.due_after(microseconds(4)) == polled.both(0));
  CHECK(polled.due_after(microseconds(28) - Duration(1)) == polled.both(0));
  CHECK(polled.due_after(microseconds(4)) == all);
}

TEST_CASE("a last resort beside a busy NIC is polled every 256 us") {
  Polled polled({device("eth0", ipv4(1)), stream_device("eth1", ipv4(2))});
  polled.fall_silent();
  REQUIRE(polled.due_after({}) == (polled.both(0) | polled.both(1)));

  CHECK(polled.due_after(microseconds(256) - Duration(1)) == polled.both(0));
  CHECK(polled.due_after(microseconds(32)) == (polled.both(0) | polled.both(1)));
}

TEST_CASE("a further address that no peer uses is polled at once, then every 256 us") {
  Polled polled({device("eth0", ipv4(1)), device("eth0", ipv4(2))});
  REQUIRE(polled.due_after({}) == (polled.both(0) | polled.both(1)));

  CHECK(polled.due_after(microseconds(256) - Duration(1)) == polled.both(0));
  CHECK(polled.due_after(Duration(1)) == (polled.both(0) | polled.both(1)));
  CHECK(polled.due_after(Duration(1)) == polled.both(0));
}

TEST_CASE("a further address that a peer uses is polled like a quiet NIC") {
  Polled polled({device("eth0", ipv4(1)), device("eth0", ipv4(2))});
  REQUIRE(polled.due_after({}) == (polled.both(0) | polled.both(1)));
  REQUIRE(polled.due_after(microseconds(32)) == polled.both(0));

  polled.poller.attend(1);

  CHECK(polled.due_after(Duration(1)) == (polled.both(0) | polled.both(1)));
  CHECK(polled.due_after(microseconds(32)) == (polled.both(0) | polled.both(1)));
}

TEST_CASE("a further address without peers is still polled while a peer uses another one") {
  Polled polled({device("eth0", ipv4(1)), device("eth0", ipv4(2)), device("eth0", ipv4(3))});
  REQUIRE(polled.due_after({}) == polled.nics.table.all_channels());

  polled.poller.attend(1);

  CHECK((polled.due_after(microseconds(255)) & polled.both(2)) == 0);
  CHECK(polled.due_after(microseconds(1)) == polled.nics.table.all_channels());
}

TEST_CASE("before a program blocks, a further address without peers is polled in the next turn") {
  Polled polled({device("eth0", ipv4(1)), device("eth0", ipv4(2))});
  REQUIRE(polled.due_after({}) == (polled.both(0) | polled.both(1)));

  polled.poller.poll_all_next_turn();

  CHECK(polled.due_after(Duration(1)) == (polled.both(0) | polled.both(1)));
}

TEST_CASE("packets left in a channel are deferred until they are taken or its NIC changes") {
  Polled polled(2);
  const Channel& data = polled.channel(1, ChannelKind::kData);
  polled.poller.set_deferred(data, true);
  CHECK(polled.poller.has_deferred());
  CHECK(polled.poller.has_deferred(data));
  CHECK_FALSE(polled.poller.has_deferred(polled.channel(1, ChannelKind::kCommand)));

  polled.poller.forget(0);
  CHECK(polled.poller.has_deferred());
  polled.poller.forget(1);
  CHECK_FALSE(polled.poller.has_deferred());

  polled.poller.set_deferred(data, true);
  polled.poller.set_deferred(data, false);
  CHECK_FALSE(polled.poller.has_deferred());
}

TEST_CASE("the next turn is due at the earliest of the times until which channels rest") {
  Polled polled(1);
  polled.poller.begin_turn();
  CHECK(polled.poller.resting_until() == kNever);

  polled.poller.rest_until(polled.now + microseconds(5));
  polled.poller.rest_until(polled.now + microseconds(9));
  CHECK(polled.poller.resting_until() == polled.now + microseconds(5));

  polled.poller.begin_turn();
  CHECK(polled.poller.resting_until() == kNever);
}

TEST_CASE("while something comes through memory, channels are polled once in 32 us") {
  Polled polled(1);
  CHECK_FALSE(polled.poller.rests_beside_memory(polled.now));
  polled.poller.note_memory_active(polled.now);
  CHECK_FALSE(polled.poller.rests_beside_memory(polled.now));

  CHECK(polled.due_after(Duration(1)) == polled.both(0));
  CHECK(polled.poller.rests_beside_memory(polled.now));
  CHECK(polled.due_after(microseconds(31)) == 0);
  CHECK_FALSE(polled.poller.rests_beside_memory(polled.now + microseconds(1)));
  CHECK(polled.due_after(microseconds(1)) == polled.both(0));
  CHECK(polled.due_after(microseconds(31)) == 0);
}

}  // namespace pullman::engine
