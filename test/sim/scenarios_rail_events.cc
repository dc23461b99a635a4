// Scenarios: what a program hears of rails that go and come, and rails that stay out.
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

TEST_CASE("the rails of a peer come when it connects, each once") {
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

TEST_CASE("a program hears at both ends of a rail that goes and comes again") {
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

TEST_CASE("a rail that goes and comes while nobody asks is one event that says so") {
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

TEST_CASE("what is asked of one peer leaves the events of others where they are") {
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

TEST_CASE("of a peer that has ended no rail event is told") {
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

TEST_CASE("where there is one NIC at either end no rail event is told") {
  RailScene scene({1, 2});
  const auto couple = scene.couple(0, 1);
  scene.run_for(seconds(1));
  CHECK_FALSE(next_event(scene, 0));
  CHECK_FALSE(next_event(scene, 1));
  CHECK_FALSE(next_event(scene, 0, couple.there));
}

}  // namespace
}  // namespace pullman::sim
