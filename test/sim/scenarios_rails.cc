// Scenarios: rails. What they carry, and how one fails and comes back.
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// On a kernel 20 ms are allowed (p99). Half of the cases take 1 to 2 ms here, the slowest 5.
constexpr Duration kMaxGap = milliseconds(6);

void at_gigabit(RailScene& scene, std::uint8_t nics) {
  for (std::uint8_t nic = 0; nic < nics; ++nic) {
    scene.change_wires(nic, [](WireFaults& wire) {
      wire.ns_per_kib = kGigabit;
      wire.queue = milliseconds(5);
    });
  }
}

TEST_CASE("a long message is sent over both rails, half on each") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  constexpr std::size_t kBytes = 4 << 20;
  Act& receive = scene.receive(1, couple.back, 1, kBytes);
  const Instant start = scene.now();

  scene.send(0, couple.there, 1, kBytes);
  REQUIRE(scene.run_until_done(receive));

  CHECK(Scene::holds(receive, 1, kBytes));
  const auto rails = scene.rails(0, couple.there);
  const auto ratio = static_cast<double>(rails[0].bytes_sent) / static_cast<double>(kBytes);
  CHECK(ratio > 0.4);
  CHECK(ratio < 0.6);
  const double seconds_alone = kBytes / 1024.0 * kGigabit * 1e-9;
  CHECK(std::chrono::duration<double>(scene.now() - start).count() < 0.6 * seconds_alone);
}

TEST_CASE("a rail that is ten times slower gets its share and delays nothing") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  scene.change_wires(1, [](WireFaults& wire) { wire.ns_per_kib = 10 * kGigabit; });
  const auto couple = scene.couple_by_rails(2);
  Stream warm(scene, couple, 256 << 10, 4);
  warm.run_for(milliseconds(50));
  REQUIRE(warm.finish());
  constexpr std::size_t kBytes = 8 << 20;
  const auto before = scene.rails(0, couple.there);
  Act& receive = scene.receive(1, couple.back, 0, kBytes);
  const Instant start = scene.now();

  scene.send(0, couple.there, 0, kBytes);
  REQUIRE(scene.run_until_done(receive));

  const auto after = scene.rails(0, couple.there);
  const auto slow = static_cast<double>(after[1].bytes_sent - before[1].bytes_sent) / kBytes;
  INFO("share of the slow rail: " << slow);
  CHECK(slow > 0.03);
  CHECK(slow < 0.13);
  const double seconds_alone = kBytes / 1024.0 * kGigabit * 1e-9;
  const double took = std::chrono::duration<double>(scene.now() - start).count();
  INFO("took " << took << " s, alone " << seconds_alone << " s");
  CHECK(took < 1.02 * seconds_alone);
}

TEST_CASE("a rail whose round trip was measured as long carries again once it is short") {
  RailScene scene({2, 2});
  const auto ways_take = [&](Duration delay) {
    scene.change_wires(1, [&](WireFaults& wire) { wire.delay = delay; });
  };
  ways_take(milliseconds(40));
  const auto couple = scene.couple_by_rails(2);
  at_gigabit(scene, 2);
  ways_take(microseconds(10));
  scene.run_for(seconds(1));
  const auto before = scene.rails(0, couple.there);
  Stream stream(scene, couple, 64 << 10, 8);

  stream.run_for(milliseconds(400));

  const auto bytes = scene.bytes_sent_since(before, 0, couple.there);
  CHECK(bytes[1] > 0.5 * bytes[0]);
  CHECK(stream.finish());
}

enum class Death { kBothWays, kOneWay, kOtherWay, kLinkDownHere, kLinkDownThere, kNicDead };

void kill(RailScene& scene, std::uint8_t nic, Death death) {
  switch (death) {
    case Death::kBothWays:
      return scene.cut_both_ways(nic);
    case Death::kOneWay:
      return scene.cut(nic, 0, 1);
    case Death::kOtherWay:
      return scene.cut(nic, 1, 0);
    case Death::kLinkDownHere:
      return scene.trouble(0, nic, NicTrouble::Kind::kUnplugged);
    case Death::kLinkDownThere:
      return scene.trouble(1, nic, NicTrouble::Kind::kUnplugged);
    case Death::kNicDead:
      return scene.trouble(0, nic, NicTrouble::Kind::kDead);
  }
}

const char* text_of(Death death) {
  constexpr const char* kTexts[] = {"both ways",      "one way",         "other way",
                                    "link down here", "link down there", "NIC dead"};
  return kTexts[static_cast<int>(death)];
}

TEST_CASE("when a rail dies under a stream nothing is lost, and messages go on at once") {
  const Death death = GENERATE(Death::kBothWays, Death::kOneWay, Death::kOtherWay,
                               Death::kLinkDownHere, Death::kLinkDownThere, Death::kNicDead);
  const std::uint8_t nic = GENERATE(0, 1);
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(20));
  stream.longest_gap();

  kill(scene, nic, death);
  stream.run_for(milliseconds(40));

  const Duration gap = stream.longest_gap();
  INFO("NIC " << int{nic} << ", " << text_of(death) << ": gap "
              << static_cast<double>(gap.count()) / 1e6 << " ms");
  CHECK(gap < kMaxGap);
  // A rail that is dead one way is down at both ends.
  CHECK(scene.rail(0, couple.there, nic).state != RailState::kUp);
  CHECK(scene.rail(1, couple.back, nic).state != RailState::kUp);
  const std::size_t before = stream.arrived();
  stream.run_for(milliseconds(20));
  CHECK(stream.arrived() - before >= 36);  // 0.95 of one rail
  CHECK(stream.finish());
}

TEST_CASE("five to eight rails all carry, and all but one may die") {
  const std::size_t count = GENERATE(5u, 6u, 7u, 8u);
  RailScene scene({count, count});
  at_gigabit(scene, static_cast<std::uint8_t>(count));
  const auto couple = scene.couple_by_rails(count);
  Stream stream(scene, couple, 64 << 10, 2 * count);
  stream.run_for(milliseconds(20));
  for (const RailView& view : scene.rails(0, couple.there)) CHECK(view.bytes_sent > 64 << 10);

  // The one that is left is not always of the same number.
  const auto last = static_cast<std::uint8_t>(count / 2);
  for (std::uint8_t nic = 0; nic < count; ++nic) {
    if (nic == last) continue;
    scene.cut_both_ways(nic, seconds(1));
    stream.run_for(milliseconds(5));
  }
  stream.run_for(milliseconds(50));
  const std::size_t before = stream.arrived();
  stream.run_for(milliseconds(20));

  INFO(count << " rails");
  CHECK(stream.arrived() - before >= 36);  // 0.95 of one rail
  for (const RailView& view : scene.rails(1, couple.back)) {
    CHECK((view.state == RailState::kUp) == (view.number == last));
  }
  scene.run_for(seconds(1));
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(3)));
  CHECK(stream.finish());
}

TEST_CASE("beside a host of eight NICs, one with fewer has as many rails as NICs") {
  const std::size_t few = GENERATE(2u, 5u);
  RailScene scene({few, 8});
  const auto couple = scene.couple_by_rails(few);
  Act& receive = scene.receive(1, couple.back, 1, 1 << 20);
  scene.send(0, couple.there, 1, 1 << 20);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1, 1 << 20));
}

// That is what was in flight on that rail, not the whole message, and nothing that had arrived.
TEST_CASE("bytes that are sent again after a cut are at most those in flight") {
  constexpr std::size_t kBytes = 16 << 20;
  const std::uint8_t nic = GENERATE(0, 1);
  const Death death = GENERATE(Death::kBothWays, Death::kOneWay, Death::kLinkDownHere);
  std::size_t in_flight = 0;  // bytes, the most since the cut
  const auto bytes_sent = [&](bool cuts) {
    RailScene scene({2, 2});
    for (std::uint8_t i = 0; i < 2; ++i) {
      scene.change_wires(i, [](WireFaults& wire) { wire.ns_per_kib = kGigabit; });
    }
    const auto couple = scene.couple_by_rails(2);
    const auto all_sent = [&] {
      std::uint64_t bytes = 0;
      for (const RailView& view : scene.rails(0, couple.there)) bytes += view.bytes_sent;
      return bytes;
    };
    const std::uint64_t before = all_sent();
    Act& receive = scene.receive(1, couple.back, 1, kBytes);
    scene.send(0, couple.there, 1, kBytes);
    scene.run_for(milliseconds(20));
    if (cuts) {
      kill(scene, nic, death);
      REQUIRE(scene.run_until([&] {
        const RailView view = scene.rail(0, couple.there, nic);
        in_flight = std::max(in_flight, std::size_t{view.in_flight} * view.packet_bytes);
        return view.evacuated > 0;
      }));
    }
    REQUIRE(scene.run_until_done(receive));
    CHECK(Scene::holds(receive, 1, kBytes));
    return all_sent() - before;
  };

  const std::uint64_t whole = bytes_sent(false);
  const std::uint64_t with_cut = bytes_sent(true);

  INFO("NIC " << int{nic} << ", " << text_of(death) << ": " << with_cut - whole
              << " bytes again, in flight " << in_flight);
  CHECK(with_cut > whole);
  CHECK(with_cut - whole <= in_flight + 1472);  // a chunk that is cut anew has another head
  CHECK(in_flight < kBytes / 8);
}

TEST_CASE("messages without allowance are announced although a rail is dead") {
  RailScene scene({2, 2}, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = 1 << 20;
  });
  const auto [there, back] = scene.couple_by_rails(2);
  scene.cut_both_ways(GENERATE(std::uint8_t{0}, std::uint8_t{1}));
  for (Tag i = 0; i < 300; ++i) scene.send(0, there, i, 2000);
  scene.send(0, there, 1000, 5000);

  Act& receive = scene.receive(1, back, 1000, 5000);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 1000, 5000));
}

TEST_CASE("a NIC's report that its link is down takes the rail down at once") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged);
  scene.run_for(microseconds(100));

  CHECK(scene.rail(0, couple.there, 1).state == RailState::kDown);
  CHECK(scene.rail(0, couple.there, 1).reason == RailReason::kLinkDown);
  CHECK(scene.rail(1, couple.back, 1).state == RailState::kDown);
  CHECK(scene.rail(1, couple.back, 1).reason == RailReason::kTold);
}

// Before both ends are ready the neighbour's address does not resolve for a second.
TEST_CASE("a rail is probed soon after its NIC has reported its link up, not sooner") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, seconds(1));
  scene.run_for(milliseconds(999));
  CHECK_FALSE(scene.all_up(couple));
  scene.run_for(milliseconds(11));

  CHECK(scene.all_up(couple));
}

TEST_CASE("a rail is used again within a second of its repair") {
  const bool idle = GENERATE(false, true);
  const Duration cut = GENERATE(milliseconds(50), milliseconds(700), milliseconds(5000));
  const std::uint8_t nic = GENERATE(0, 1);
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  scene.cut_both_ways(nic, cut);
  Act& receive = scene.receive(1, couple.back, 1, 100'000);
  scene.send(0, couple.there, 1, 100'000);
  scene.run_for(cut);
  REQUIRE(receive.done());
  REQUIRE_FALSE(scene.all_up(couple));

  const Instant mended = scene.now();
  if (idle) {
    REQUIRE(scene.run_until([&] { return scene.all_up(couple); }));
  } else {
    for (Tag i = 2; !scene.all_up(couple) && scene.now() - mended < seconds(30); ++i) {
      Act& next = scene.receive(1, couple.back, i, 10'000);
      scene.send(0, couple.there, i, 10'000);
      REQUIRE(scene.run_until_done(next));
      scene.run_for(milliseconds(1));
    }
  }

  CHECK(scene.now() - mended < seconds(1));
  Act& last = scene.receive(1, couple.back, 0, 1 << 20);
  const std::uint64_t before = scene.rail(0, couple.there, nic).packets_sent;
  scene.send(0, couple.there, 0, 1 << 20);
  REQUIRE(scene.run_until_done(last));
  CHECK(scene.rail(0, couple.there, nic).packets_sent > before);
}

TEST_CASE("a rail that was just repaired carries when the other one dies") {
  const Duration pause = GENERATE(milliseconds(0), milliseconds(50), milliseconds(150));
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  scene.cut_both_ways(0, seconds(2));
  stream.run_for(seconds(2) + pause);
  stream.longest_gap();

  scene.cut_both_ways(1);
  stream.run_for(milliseconds(300));

  const Duration gap = stream.longest_gap();
  INFO("gap " << static_cast<double>(gap.count()) / 1e6 << " ms");
  CHECK(gap < milliseconds(20));
  CHECK(stream.finish());
}

TEST_CASE("a rail that flaps ten times a second costs the other less than 2 %") {
  const auto kind = GENERATE(NicTrouble::Kind::kUnplugged, NicTrouble::Kind::kDead);
  constexpr Duration kTime = milliseconds(1500);
  const auto delivered = [&](bool flaps) {
    RailScene scene({2, 2});
    for (std::uint8_t nic = 0; nic < 2; ++nic) {
      scene.change_wires(nic, [](WireFaults& wire) { wire.ns_per_kib = 5 * kGigabit; });
    }
    const auto couple = scene.couple_by_rails(2);
    Stream stream(scene, couple, 64 << 10, 4);
    if (!flaps) scene.trouble(0, 1, kind);
    for (int i = 0; flaps && i < 20; ++i) {
      const Instant start = scene.now() + milliseconds(100) * i;
      scene.network().trouble(
          {.at = {0, 1}, .start = start, .end = start + milliseconds(95), .kind = kind});
    }
    stream.run_for(milliseconds(50));
    const std::size_t before = stream.arrived();
    stream.run_for(kTime);
    const std::size_t arrived = stream.arrived() - before;
    CHECK(stream.finish());
    return static_cast<double>(arrived);
  };

  const double alone = delivered(false);
  const double beside = delivered(true);

  INFO("alone " << alone << ", beside one that flaps " << beside);
  CHECK(beside > 0.98 * alone);
}

TEST_CASE("a rail that loses 30 % goes down, and is used again when it no longer does") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  scene.change_wires(1, [](WireFaults& wire) { wire.loss = 300'000; });
  Stream stream(scene, couple, 64 << 10, 4);

  REQUIRE(scene.run_until(
      [&] {
        stream.run_for(milliseconds(1));
        return scene.rail(0, couple.there, 1).reason == RailReason::kLossy;
      },
      milliseconds(500)));
  CHECK(scene.rail(0, couple.there, 1).state == RailState::kDown);
  stream.run_for(milliseconds(100));
  const std::size_t before = stream.arrived();
  stream.run_for(milliseconds(50));
  INFO("in 50 ms arrived " << stream.arrived() - before << " messages");
  CHECK(stream.arrived() - before >= 85);  // 0.9 of one rail

  scene.change_wires(1, [](WireFaults& wire) { wire.loss = 0; });
  REQUIRE(stream.finish());
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(3)));
}

TEST_CASE("a message to a peer whose rails' ports are kept full by others has its turn in time") {
  RailScene scene({2, 2, 2}, [](NodePlan& plan) {
    plan.data.bursts = true;
    plan.data.send_queue = 8;
    plan.data.send_ns_per_kib = kGigabit;
  });
  const auto busy = scene.couple_by_rails(2);
  const auto other = scene.couple(0, 2);
  REQUIRE(scene.run_until([&] { return scene.rails(0, other.there).size() == 2; }));
  Stream stream(scene, busy, 4 << 20, 2);
  stream.run_for(milliseconds(30));
  constexpr std::size_t kBytes = 200'000;
  Act& receive = scene.receive(2, other.back, 1, kBytes);

  scene.send(0, other.there, 1, kBytes);
  const Instant begun = scene.now();
  while (!receive.done() && scene.now() - begun < milliseconds(400))
    stream.run_for(milliseconds(1));

  CHECK(receive.done());
  CHECK(stream.finish());
}

TEST_CASE("a NIC that reports errors for packets it delivers does not harm a stream") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  scene.trouble(0, 1, NicTrouble::Kind::kLiar);
  Stream stream(scene, couple, 32 << 10, 4);

  stream.run_for(milliseconds(2));

  CHECK(scene.stats(0).nic_send_errors > 0);
  CHECK(stream.finish());
}

TEST_CASE("a rail whose NIC reports success and delivers nothing goes down") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  scene.trouble(0, 1, NicTrouble::Kind::kDead);
  Stream stream(scene, couple, 32 << 10, 4);

  stream.run_for(milliseconds(20));

  CHECK(scene.rail(0, couple.there, 1).state != RailState::kUp);
  CHECK(scene.rail(0, couple.there, 1).evacuated > 0);
  CHECK(stream.finish());
}

TEST_CASE("a rail that damages all packets goes down") {
  RailScene scene({2, 2}, [](NodePlan& plan) { plan.config.checksum = true; });
  const auto couple = scene.couple_by_rails(2);
  scene.change_wires(1, [](WireFaults& wire) { wire.corrupt = 1'000'000; });
  Stream stream(scene, couple, 32 << 10, 4);

  stream.run_for(milliseconds(20));

  CHECK(scene.rail(0, couple.there, 1).state != RailState::kUp);
  CHECK(stream.finish());
}

// Packets queued on a failing NIC must not be lost with it.
TEST_CASE("packets queued for a NIC that takes nothing leave on another rail") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  const std::uint8_t nic = GENERATE(0, 1);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(5));
  stream.longest_gap();

  scene.trouble(0, nic, NicTrouble::Kind::kStuck);
  stream.run_for(milliseconds(40));

  const Duration gap = stream.longest_gap();
  INFO("gap " << static_cast<double>(gap.count()) / 1e6 << " ms");
  CHECK(gap < kMaxGap);
  CHECK(scene.rail(0, couple.there, nic).evacuated > 0);
  CHECK(stream.finish());
}

TEST_CASE("small messages queued for a NIC that takes nothing leave on another rail") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  const std::uint8_t nic = GENERATE(0, 1);
  scene.trouble(0, nic, NicTrouble::Kind::kStuck);
  std::vector<Act*> receives;
  for (Tag i = 0; i < 200; ++i) {
    receives.push_back(&scene.receive(1, couple.back, i, 1000));
    scene.send(0, couple.there, i, 5 * i);
  }

  for (std::size_t i = 0; i < receives.size(); ++i) {
    REQUIRE(scene.run_until_done(*receives[i], milliseconds(100)));
    CHECK(Scene::holds(*receives[i], i, 5 * i));
  }
}

TEST_CASE("packets held by a cut do no harm when they arrive after it") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(5));

  scene.cut_both_ways(1, milliseconds(30), true);
  stream.run_for(milliseconds(60));

  CHECK(scene.network().counters().reordered > 0);
  CHECK(stream.finish());
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(1)));
}

// Its packets are late, not lost: as if other work on the host's processors delayed one of its
// NICs.
TEST_CASE("a rail that stands still for a few milliseconds again and again is not kept out") {
  const std::uint8_t nic = GENERATE(0, 1);
  const Duration length = GENERATE(milliseconds(3), milliseconds(6), milliseconds(12));
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  for (int i = 0; i < 20; ++i) {
    scene.cut_both_ways(nic, length, true);
    stream.run_for(milliseconds(100));
    CAPTURE(i, nic, length);
    CHECK(scene.all_up(couple));
  }
  CHECK(stream.finish());
}

TEST_CASE("with all rails down for less than the peer timeout nothing fails") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  const bool told = GENERATE(false, true);
  Stream stream(scene, couple, 16 << 10, 4);
  stream.run_for(milliseconds(1));

  for (std::uint8_t nic = 0; nic < 2; ++nic) {
    if (told) {
      scene.trouble(0, nic, NicTrouble::Kind::kUnplugged, seconds(8));
    } else {
      scene.cut_both_ways(nic, seconds(8));
    }
  }
  scene.run_for(seconds(8));
  const std::size_t before = stream.arrived();
  stream.run_for(milliseconds(300));

  CHECK(stream.arrived() > before);
  CHECK(stream.finish());
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(2)));
}

TEST_CASE("with all rails down for longer each operation fails once, as unreachable") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  const bool told = GENERATE(false, true);
  for (std::uint8_t nic = 0; nic < 2; ++nic) {
    if (told) {
      scene.trouble(0, nic, NicTrouble::Kind::kUnplugged);
    } else {
      scene.cut_both_ways(nic);
    }
  }
  std::vector<Act*> acts;
  for (Tag i = 0; i < 10; ++i) {
    acts.push_back(&scene.send(0, couple.there, i, 100'000));
    acts.push_back(&scene.receive(0, couple.there, i, 1000));
  }

  for (const Act* act : acts) {
    REQUIRE(scene.run_until_done(*act, seconds(15)));
    CHECK(act->status() == Status::kUnreachable);
  }
  const engine::Audit audit = scene.engine(0).inspector().audit();
  CHECK(audit.packets_taken == 0);
  CHECK(audit.windows_in_use == 0);
}

TEST_CASE("small messages are packed for the shortest packets of the rails in use") {
  RailScene scene({2, 2}, {}, [](NodePlan& plan) {
    plan.more[0].command.packet_bytes = plan.more[0].data.packet_bytes = 600;
  });
  const auto couple = scene.couple_by_rails(2);
  scene.trouble(0, 0, NicTrouble::Kind::kUnplugged);
  scene.run_for(milliseconds(1));
  std::vector<Act*> receives;
  for (Tag i = 0; i < 60; ++i) receives.push_back(&scene.receive(1, couple.back, i, 100));

  for (Tag i = 0; i < 60; ++i) scene.send(0, couple.there, i, 100);

  for (const Act* act : receives) CHECK(scene.run_until_done(*act, milliseconds(100)));
}

TEST_CASE("a rail whose address cannot be resolved at first is up once it can") {
  RailScene scene({2, 2}, {}, [](NodePlan& plan) {
    plan.more[0].command.resolve_failure = plan.more[0].data.resolve_failure = 800'000;
  });
  const auto couple = scene.couple(0, 1);

  CHECK(scene.run_until(
      [&] { return scene.rails(0, couple.there).size() == 2 && scene.all_up(couple); },
      seconds(20)));
}

TEST_CASE("a peer that is silent on all rails is probed again and again with few packets") {
  RailScene scene({3, 3}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(60); });
  const auto couple = scene.couple_by_rails(3);
  for (std::uint8_t nic = 0; nic < 3; ++nic) scene.cut_both_ways(nic, seconds(50));
  Act& act = scene.receive(0, couple.there, 1, 100);

  scene.run_for(seconds(45));
  CHECK(scene.engine(0).inspector().audit().packets_in_flight <= 3 * 6);

  scene.send(1, couple.back, 1, 100);
  CHECK(scene.run_until_done(act, seconds(10)));
}

TEST_CASE("no rail goes down because a peer died") {
  RailScene scene({3, 3});
  at_gigabit(scene, 3);
  const auto couple = scene.couple_by_rails(3);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(5));

  scene.node(1).end(true);
  scene.run_for(seconds(12));

  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kPeerDied);
  CHECK(scene.engine(0).inspector().audit().rails_blamed == 0);
}

TEST_CASE("no rail goes down because a peer does nothing for a while") {
  const Duration pause = GENERATE(milliseconds(3), milliseconds(50), milliseconds(2000));
  const bool there = GENERATE(true, false);
  RailScene scene({3, 3});
  at_gigabit(scene, 3);
  const auto couple = scene.couple_by_rails(3);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(5));

  for (int i = 0; i < 3; ++i) {
    scene.node(there ? 1 : 0).stall_until(scene.now() + pause);
    stream.run_for(pause + milliseconds(10));
  }

  CHECK(scene.engine(0).inspector().audit().rails_blamed == 0);
  CHECK(scene.engine(1).inspector().audit().rails_blamed == 0);
  CHECK(stream.finish());
}

TEST_CASE("no rail goes down because a peer polls only now and then") {
  const Duration interval = GENERATE(milliseconds(1), milliseconds(7), milliseconds(50));
  RailScene scene({3, 3}, [](NodePlan& plan) { plan.polls_once = true; });
  at_gigabit(scene, 3);
  scene.node(1).set_poll_interval(interval);
  const auto couple = scene.couple_by_rails(3);
  Stream stream(scene, couple, 32 << 10, 4);

  stream.run_for(seconds(1));

  CHECK(stream.arrived() > 0);
  CHECK(scene.engine(0).inspector().audit().rails_blamed == 0);
  CHECK(scene.engine(1).inspector().audit().rails_blamed == 0);
}

TEST_CASE("a peer that polls now and then is probed little once it has received everything") {
  const Duration interval = GENERATE(milliseconds(20), milliseconds(40));
  RailScene scene({5, 5}, [](NodePlan& plan) { plan.polls_once = true; });
  const auto couple = scene.couple_by_rails(5);
  Stream stream(scene, couple, 32 << 10, 4);
  stream.run_for(milliseconds(20));
  scene.node(1).set_poll_interval(interval);
  stream.run_for(milliseconds(300));
  REQUIRE(stream.finish());

  std::size_t packets = 0;
  scene.network().set_observer([&](const Passing&) { ++packets; });
  scene.run_for(seconds(20));

  CHECK(packets < 60);
}

TEST_CASE("a drained rail loses nothing, is idle at both ends, and is used again when restored") {
  RailScene scene({2, 2});
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(5));
  stream.longest_gap();

  REQUIRE(scene.engine(0).drain_rail(scene.node(0).local_now(), "sim0.1") == Status::kOk);
  scene.node(0).touched();
  stream.run_for(milliseconds(20));

  CHECK(stream.longest_gap() < milliseconds(2));
  CHECK(scene.rail(0, couple.there, 1).state == RailState::kDrained);
  CHECK(scene.rail(1, couple.back, 1).state == RailState::kDrained);
  const std::uint64_t before = scene.rail(0, couple.there, 1).packets_sent;
  stream.run_for(milliseconds(5));
  CHECK(scene.rail(0, couple.there, 1).packets_sent == before);

  REQUIRE(scene.engine(0).restore_rail(scene.node(0).local_now(), "sim0.1") == Status::kOk);
  scene.node(0).touched();
  stream.run_for(milliseconds(50));
  CHECK(scene.all_up(couple));
  CHECK(stream.finish());
}

// Any combination of rails may fail.
TEST_CASE(
    "whichever of four rails fail, the others carry on, and all are used again after repair") {
  const unsigned failing = GENERATE(range(1u, 16u));
  const bool told = GENERATE(false, true);
  RailScene scene({4, 4});
  at_gigabit(scene, 4);
  const auto couple = scene.couple_by_rails(4);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(20));
  CAPTURE(failing, told);

  for (std::uint8_t nic = 0; nic < 4; ++nic) {
    if ((failing >> nic & 1) == 0) continue;
    if (told) scene.trouble(0, nic, NicTrouble::Kind::kUnplugged, milliseconds(200));
    if (!told) scene.cut_both_ways(nic, milliseconds(200));
  }
  const std::size_t before = stream.arrived();
  stream.run_for(milliseconds(150));

  CHECK((stream.arrived() > before + 20) == (failing != 15));
  for (std::uint8_t nic = 0; nic < 4; ++nic) {
    const bool up = scene.rail(0, couple.there, nic).state == RailState::kUp;
    if (failing != 15) CHECK(up == ((failing >> nic & 1) == 0));
  }
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(4)));
  CHECK(stream.finish());
}

TEST_CASE("the last resort carries messages while no datagram gets through") {
  RailScene scene({2, 2}, {}, [](NodePlan& plan) { plan.more.back().stream = true; });
  at_gigabit(scene, 2);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(50));
  const std::uint64_t idle = scene.rail(0, couple.there, 1).bytes_sent;

  scene.cut_both_ways(0, milliseconds(500));
  stream.run_for(milliseconds(500));
  const std::uint64_t carried = scene.rail(0, couple.there, 1).bytes_sent;
  REQUIRE(scene.run_until([&] { return scene.all_up(couple); }, seconds(4)));
  const std::uint64_t back = scene.rail(0, couple.there, 1).bytes_sent;
  const std::uint64_t datagrams = scene.rail(0, couple.there, 0).bytes_sent;
  stream.run_for(milliseconds(200));

  CHECK(idle < 100'000);
  CHECK(carried > 1'000'000);
  CHECK(scene.rail(0, couple.there, 0).bytes_sent > datagrams + 1'000'000);
  CHECK(scene.rail(0, couple.there, 1).bytes_sent - back < 1'000'000);
  CHECK(stream.finish());
}

}  // namespace
}  // namespace pullman::sim
