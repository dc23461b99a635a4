// Scenarios: the events of rails that go down and come up, and rails that are kept out.
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::optional<RailEvent> next_event(RailScene& scene, std::size_t host, PeerId peer = kAnyPeer) {
  return scene.engine(host).take_rail_event(peer);
}

void take_all(RailScene& scene, std::size_t host) {
  while (next_event(scene, host)) {
  }
}

TEST_CASE("the rails of a peer are reported when it connects, each once") {
  RailScene scene({3, 3});
  CHECK_FALSE(next_event(scene, 0));

  const auto couple = scene.couple_by_rails(3);

  for (const std::size_t host : {0, 1}) {
    std::vector<unsigned> numbers;
    while (const auto event = next_event(scene, host)) {
      CHECK(event->peer == (host == 0 ? couple.there : couple.back));
      CHECK(event->carries);
      CHECK(event->state == RailState::kUp);
      CHECK(event->changes == 1);
      CHECK(event->nic == scene.rail(host, event->peer, event->number).nic);
      numbers.push_back(event->number);
    }
    std::sort(numbers.begin(), numbers.end());
    CHECK(numbers == std::vector<unsigned>{0, 1, 2});
  }
}

TEST_CASE("both ends report a rail that goes down and comes up again") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  for (const std::size_t host : {0, 1}) take_all(scene, host);

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, milliseconds(100));
  scene.run_for(milliseconds(50));
  for (const std::size_t host : {0, 1}) {
    const auto gone = next_event(scene, host);
    REQUIRE(gone);
    CHECK(gone->number == 1);
    CHECK_FALSE(gone->carries);
    CHECK(gone->reason == (host == 0 ? RailReason::kLinkDown : RailReason::kTold));
    CHECK(gone->changes == 1);
    CHECK_FALSE(next_event(scene, host));
  }
  REQUIRE(scene.run_until([&] { return scene.all_up(couple); }));

  for (const std::size_t host : {0, 1}) {
    const auto back = next_event(scene, host);
    REQUIRE(back);
    CHECK(back->number == 1);
    CHECK(back->carries);
    CHECK(back->changes == 1);
    CHECK_FALSE(next_event(scene, host));
  }
}

TEST_CASE(
    "a rail that goes down and up before events are taken is one event with the count of changes") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  take_all(scene, 0);
  for (int i = 0; i < 2; ++i) {
    scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, milliseconds(20));
    scene.run_for(milliseconds(20));
    REQUIRE(scene.run_until([&] { return scene.all_up(couple); }));
  }

  const auto event = next_event(scene, 0);

  REQUIRE(event);
  CHECK(event->carries);
  CHECK(event->changes == 4);
  CHECK_FALSE(next_event(scene, 0));
}

TEST_CASE("taking the events of one peer leaves those of others in place") {
  RailScene scene({2, 2, 2});
  const auto first = scene.couple_by_rails(2);
  const auto second = scene.couple(0, 2);
  REQUIRE(scene.run_until(
      [&] { return scene.rails(0, second.there).size() == 2 && scene.all_up(0, second.there); }));
  take_all(scene, 0);

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged);
  scene.run_for(milliseconds(10));

  const auto of_second = next_event(scene, 0, second.there);
  REQUIRE(of_second);
  CHECK(of_second->peer == second.there);
  CHECK_FALSE(next_event(scene, 0, second.there));
  const auto of_first = next_event(scene, 0);
  REQUIRE(of_first);
  CHECK(of_first->peer == first.there);
  CHECK_FALSE(next_event(scene, 0));
}

TEST_CASE("no rail event of a peer that has ended is reported") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  take_all(scene, 0);
  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged);
  scene.run_for(milliseconds(10));

  scene.engine(0).abandon(couple.there);
  scene.node(0).touched();
  CHECK_FALSE(next_event(scene, 0));
  scene.run_for(seconds(1));

  CHECK_FALSE(next_event(scene, 0));
  CHECK_FALSE(next_event(scene, 0, couple.there));
}

TEST_CASE("with one NIC at either end no rail event is reported") {
  RailScene scene({1, 2});
  const auto couple = scene.couple(0, 1);
  scene.run_for(seconds(1));
  CHECK_FALSE(next_event(scene, 0));
  CHECK_FALSE(next_event(scene, 1));
  CHECK_FALSE(next_event(scene, 0, couple.there));
}

// --- Config::sticky_rails

// 100 Mb/s: enough to measure, and little to simulate.
void slow_down(RailScene& scene) {
  for (std::uint8_t nic = 0; nic < 2; ++nic) {
    scene.change_wires(nic, [](WireFaults& wire) { wire.ns_per_kib = 10 * kGigabit; });
  }
}

enum class Failure { kSilent, kLinkDown, kBothLinksDown };

void fail(RailScene& scene, std::uint8_t nic, Failure failure, Duration time) {
  if (failure == Failure::kSilent) return scene.cut_both_ways(nic, time);
  scene.trouble(0, nic, NicTrouble::Kind::kUnplugged, time);
  if (failure == Failure::kBothLinksDown) scene.trouble(1, nic, NicTrouble::Kind::kUnplugged, time);
}

RailScene sticky_scene(std::size_t at, std::size_t nics = 2) {
  return RailScene({nics, nics}, {}, [at, host = std::size_t{0}](NodePlan& plan) mutable {
    plan.config.sticky_rails = at == 2 || at == host;
    ++host;
  });
}

TEST_CASE("a sticky rail that failed stays out at both ends until it is restored") {
  const auto failure = GENERATE(Failure::kSilent, Failure::kLinkDown, Failure::kBothLinksDown);
  const std::size_t at = GENERATE(0, 1, 2);  // 2: both
  const std::uint8_t nic = GENERATE(0, 1);
  RailScene scene = sticky_scene(at);
  slow_down(scene);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 8 << 10, 4);
  stream.run_for(milliseconds(5));

  fail(scene, nic, failure, milliseconds(100));
  stream.run_for(milliseconds(200));
  scene.run_for(seconds(10));
  stream.run_for(milliseconds(50));

  for (const std::size_t host : {0, 1}) {
    INFO("sticky at " << at << ", NIC " << int{nic} << ", host " << host);
    const RailView view = scene.rail(host, host == 0 ? couple.there : couple.back, nic);
    CHECK(view.state == RailState::kDrained);
    CHECK(view.reason != RailReason::kOperator);
  }
  for (const std::size_t host : {0, 1}) scene.node(host).restore_rails();
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(2)));
  CHECK(stream.finish());
}

TEST_CASE("the last sticky rail that fails is used again when it answers") {
  const std::size_t at = GENERATE(0, 1, 2);
  const bool first_is_mended = GENERATE(true, false);
  RailScene scene = sticky_scene(at);
  slow_down(scene);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 8 << 10, 4);
  stream.run_for(milliseconds(5));
  scene.trouble(0, 0, NicTrouble::Kind::kUnplugged,
                first_is_mended ? Duration(milliseconds(100)) : Duration(seconds(60)));
  stream.run_for(milliseconds(200));

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, seconds(1));
  stream.run_for(milliseconds(1));
  stream.longest_gap();
  stream.run_for(seconds(2));

  CHECK(stream.longest_gap() < (first_is_mended ? milliseconds(100) : milliseconds(2200)));
  CHECK(stream.finish());
}

TEST_CASE("a sticky rail that is kept out is probed when the last one falls silent") {
  const std::size_t at = GENERATE(0, 1, 2);
  RailScene scene = sticky_scene(at);
  slow_down(scene);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 8 << 10, 4);
  stream.run_for(milliseconds(5));
  scene.cut_both_ways(0, milliseconds(100));
  stream.run_for(milliseconds(200));

  scene.cut_both_ways(1);
  stream.run_for(seconds(4));
  stream.longest_gap();
  stream.run_for(milliseconds(100));

  CHECK(stream.longest_gap() < milliseconds(20));
  CHECK(stream.finish());
}

TEST_CASE("a rail drained by hand stays drained when its link goes down and comes up") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  const std::string nic = scene.rail(0, couple.there, 1).nic;
  CHECK(scene.engine(0).drain_rail(scene.node(0).local_now(), nic) == Status::kOk);
  scene.node(0).touched();

  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, milliseconds(50));
  scene.run_for(seconds(1));

  CHECK(scene.rail(0, couple.there, 1).state == RailState::kDrained);
  CHECK(scene.rail(1, couple.back, 1).state == RailState::kDrained);
  scene.node(0).restore_rails();
  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(1)));
}

TEST_CASE("a rail that both ends drain and restore at the same time is used again") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  for (const std::size_t host : {0, 1}) {
    const std::string nic = scene.rail(host, host == 0 ? couple.there : couple.back, 1).nic;
    CHECK(scene.engine(host).drain_rail(scene.node(host).local_now(), nic) == Status::kOk);
    scene.node(host).touched();
  }
  scene.run_for(milliseconds(10));

  for (const std::size_t host : {0, 1}) scene.node(host).restore_rails();

  CHECK(scene.run_until([&] { return scene.all_up(couple); }, seconds(1)));
}

}  // namespace
}  // namespace pullman::sim
