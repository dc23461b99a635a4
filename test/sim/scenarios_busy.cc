// Scenarios: processes that share their processors with others, and so stop and go. The delay that
// this causes is not the network's.
#include <array>
#include <catch2/catch.hpp>
#include <optional>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr TimeSlices kAlone{};
// Beside one other process, beside four, and where slices are short.
constexpr std::array<TimeSlices, 3> kShared{{{milliseconds(3), milliseconds(3)},
                                             {milliseconds(3), milliseconds(12)},
                                             {microseconds(300), milliseconds(1)}}};

// Hosts 0 and 1, of that many NICs of 1 Gb/s, and a stream between them that has found its window.
struct BusyHosts {
  explicit BusyHosts(std::size_t nics) : scene({nics, nics}) {
    for (std::size_t nic = 0; nic < nics; ++nic) {
      scene.change_wires(static_cast<std::uint8_t>(nic), [](WireFaults& wire) {
        wire.ns_per_kib = kGigabit;
        wire.queue = milliseconds(20);
      });
    }
    couple = nics == 1 ? scene.couple(0, 1) : scene.couple_by_rails(nics);
    stream.emplace(scene, couple, 256 << 10, 4);
    stream->run_for(milliseconds(200));
  }

  // The process of each of those hosts gets that much of its processor.
  void share(TimeSlices slices, bool sender, bool receiver) {
    if (sender) scene.node(0).set_slices(slices);
    if (receiver) scene.node(1).set_slices(slices);
  }

  RailScene scene;
  Scene::Couple couple;
  std::optional<Stream> stream;
};

TEST_CASE("processes that stop and go leave the congestion window as it was") {
  const auto slices = GENERATE(from_range(kShared));
  const bool sender = GENERATE(true, false);
  const bool receiver = GENERATE(true, false);
  BusyHosts hosts(1);
  const std::uint32_t before = hosts.scene.rail(0, hosts.couple.there, 0).window;
  REQUIRE(before > 20);

  std::uint32_t least = before;
  hosts.share(slices, sender, receiver);
  for (const Instant end = hosts.scene.now() + milliseconds(300); hosts.scene.now() < end;) {
    const std::size_t acked = hosts.stream->acked();
    hosts.stream->run_for(microseconds(50));
    if (hosts.stream->acked() == acked) continue;  // the peer may not run
    least = std::min(least, hosts.scene.rail(0, hosts.couple.there, 0).window);
  }
  hosts.share(kAlone, sender, receiver);

  INFO("runs " << slices.runs.count() << " ns, waits " << slices.waits.count());
  INFO("the sender shares: " << sender << ", the receiver: " << receiver);
  INFO("window before " << before << ", least " << least);
  CHECK(least >= before / 2);
  CHECK(hosts.stream->finish());
}

TEST_CASE("nothing is sent again and no rail is blamed while processes stop and go") {
  const auto slices = GENERATE(from_range(kShared));
  const std::size_t nics = GENERATE(1, 2);
  BusyHosts hosts(nics);

  hosts.share(slices, true, true);
  hosts.stream->run_for(milliseconds(300));
  CHECK(hosts.stream->finish());

  for (const std::size_t host : {0, 1}) {
    CHECK(hosts.scene.stats(host).retransmits == 0);
    CHECK(hosts.scene.engine(host).inspector().audit().rails_blamed == 0);
  }
}

// Where processes wait for a processor, so may the part of the kernel that receives from one NIC.
TEST_CASE("no rail is blamed while the kernels of crowded hosts are late to read one NIC") {
  const auto slices = GENERATE(from_range(kShared));
  const auto late = GENERATE(milliseconds(3), milliseconds(8), milliseconds(20));
  const bool both_ways = GENERATE(true, false);
  BusyHosts hosts(2);

  hosts.share(slices, true, true);
  hosts.stream->run_for(milliseconds(200));  // they learn that they are crowded
  for (std::uint8_t i = 0; i < 20; ++i) {
    const std::uint8_t nic = i % 2;
    hosts.scene.cut(nic, 0, 1, late, true);
    if (both_ways) hosts.scene.cut(nic, 1, 0, late, true);
    hosts.stream->run_for(late + milliseconds(7));
  }
  CHECK(hosts.stream->finish());

  INFO("runs " << slices.runs.count() << " ns, waits " << slices.waits.count());
  for (const std::size_t host : {0, 1}) {
    CHECK(hosts.scene.engine(host).inspector().audit().rails_blamed == 0);
  }
}

// A process may stop between its readings of two rails, and then answers what came by one of them
// before it reads the other.
TEST_CASE("no rail is blamed where processes stop in the middle of a turn") {
  const auto slices = GENERATE(TimeSlices{microseconds(1), microseconds(500)},
                               TimeSlices{microseconds(1), milliseconds(2)},
                               TimeSlices{microseconds(10), milliseconds(6)});
  const std::size_t bytes = GENERATE(100, 3000, 64 << 10);
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  scene.node(0).set_slices(slices);
  scene.node(1).set_slices(slices);
  Stream stream(scene, couple, bytes, 2);

  stream.run_for(milliseconds(3000));

  CHECK(stream.finish());
  for (const std::size_t host : {0, 1}) {
    CHECK(scene.engine(host).inspector().audit().rails_blamed == 0);
  }
}

// The packets of a process that runs again come in a burst, which a queue may not hold. (One that
// has less of its processor sends less than one of these rails carries, and may do with one.)
TEST_CASE("each of two slow rails carries its part of a stream while processes stop and go") {
  const auto slices = GENERATE(TimeSlices{microseconds(437), milliseconds(5)},
                               TimeSlices{microseconds(900), milliseconds(5)},
                               TimeSlices{milliseconds(3), milliseconds(12)});
  RailScene scene({2, 2});
  for (const std::uint8_t nic : {0, 1}) {
    scene.change_wires(nic, [](WireFaults& wire) {
      wire.ns_per_kib = 5 * kGigabit;
      wire.queue = milliseconds(20);
    });
  }
  const auto couple = scene.couple_by_rails(2);
  scene.node(0).set_slices(slices);
  scene.node(1).set_slices(slices);
  const auto before = scene.rails(0, couple.there);
  Stream stream(scene, couple, 16 << 10, 64);

  stream.run_for(milliseconds(2000));

  const auto after = scene.rails(0, couple.there);
  const auto bytes = scene.bytes_sent_since(before, 0, couple.there);
  INFO("runs " << slices.runs.count() << " ns, waits " << slices.waits.count());
  INFO("by the first " << bytes[0] << " bytes, by the second " << bytes[1]);
  CHECK(std::min(bytes[0], bytes[1]) > 0.25 * (bytes[0] + bytes[1]));
  CHECK(after[0].times_left + after[1].times_left == 0);
  CHECK(stream.finish());
}

// A rail that looks slow carries nothing, and so is not measured by what it carries.
TEST_CASE("a rail whose packets came late for a while carries its part again") {
  const std::uint8_t nic = GENERATE(0, 1);
  const bool took_small = GENERATE(true, false);
  const std::size_t depth = GENERATE(2, 8, 64);
  RailScene scene({2, 2});
  const auto set_delay = [&](std::uint8_t number, Duration delay) {
    scene.change_wires(number, [delay](WireFaults& wire) {
      wire.ns_per_kib = 5 * kGigabit;
      wire.delay = delay;
    });
  };
  set_delay(nic, microseconds(took_small ? 5 : 50));
  set_delay(1 - nic, microseconds(took_small ? 50 : 5));
  const auto couple = scene.couple_by_rails(2);
  constexpr Tag kSmall = 1'000'000;
  scene.receive(1, couple.back, kSmall, 64);
  scene.send(0, couple.there, kSmall, 64);
  set_delay(0, microseconds(5));
  set_delay(1, microseconds(5));
  Stream stream(scene, couple, 16 << 10, depth);
  stream.run_for(milliseconds(20));

  for (const int late : {500, 1000, 1500, 2000, 3000, 4000, 5000, 6000}) {
    set_delay(nic, microseconds(late));
    stream.run_for(milliseconds(15));
  }
  set_delay(nic, microseconds(5));
  const auto before = scene.rails(0, couple.there);
  REQUIRE(before[nic].rtt > milliseconds(1));
  stream.run_for(milliseconds(1000));

  const auto bytes = scene.bytes_sent_since(before, 0, couple.there);
  INFO("NIC " << int{nic} << " was late, it took small ones: " << took_small);
  INFO("by the first " << bytes[0] << " bytes, by the second " << bytes[1]);
  CHECK(std::min(bytes[0], bytes[1]) > 0.4 * (bytes[0] + bytes[1]));
  CHECK(stream.finish());
}

// As where a virtual machine, or a process, stands still and goes on. (Setting the clock of a host
// does not move the one that is used.)
TEST_CASE("a clock that jumps by an hour ends no peer and blames no rail") {
  const std::size_t nics = GENERATE(1, 2);
  const std::size_t host = GENERATE(0, 1);
  BusyHosts hosts(nics);

  for (int i = 0; i < 5; ++i) {
    hosts.scene.node(host).jump_clock(std::chrono::hours(1));
    hosts.stream->run_for(milliseconds(7));
  }
  hosts.stream->run_for(milliseconds(100));
  CHECK(hosts.stream->finish());

  for (const std::size_t each : {0, 1}) {
    CHECK(hosts.scene.stats(each).retransmits == 0);
    CHECK(hosts.scene.engine(each).inspector().audit().rails_blamed == 0);
  }
}

TEST_CASE("a clock that jumps by an hour while nothing is sent ends no peer") {
  const std::size_t host = GENERATE(0, 1);
  BusyHosts hosts(1);
  CHECK(hosts.stream->finish());

  for (int i = 0; i < 3; ++i) {
    hosts.scene.node(host).jump_clock(std::chrono::hours(1));
    hosts.scene.run_for(milliseconds(300));
  }

  CHECK(hosts.scene.all_up(hosts.couple));
  Act& received = hosts.scene.receive(1, hosts.couple.back, 1'000'000, 64);
  hosts.scene.send(0, hosts.couple.there, 1'000'000, 64);
  hosts.scene.run_until([&] { return received.done(); });
  CHECK(received.status() == Status::kOk);
}

}  // namespace
}  // namespace pullman::sim
