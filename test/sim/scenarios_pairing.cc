// Scenarios: how two hosts find their rails and agree on them.
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"
#include "wire/rails.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

// Checks that each rail's local address is the other end's remote one.
void check_mirrored(RailScene& scene, Scene::Couple couple) {
  const auto here = scene.rails(0, couple.there);
  const auto there = scene.rails(1, couple.back);
  REQUIRE(here.size() == there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    CAPTURE(i);
    CHECK(here[i].number == i);
    CHECK(here[i].local == there[i].remote);
    CHECK(here[i].remote == there[i].local);
  }
}

TEST_CASE("two hosts with two NICs each have two rails, and agree on them") {
  RailScene scene({2, 2});

  const auto couple = scene.couple_by_rails(2);

  REQUIRE(scene.rails(0, couple.there).size() == 2);
  check_mirrored(scene, couple);
  CHECK(scene.all_up(couple));
  for (const RailView& rail : scene.rails(0, couple.there)) CHECK(rail.rtt > Duration(0));
}

TEST_CASE("hosts with different numbers of NICs have as many rails as the one with fewer") {
  const auto [a, b, rails] = GENERATE(std::tuple{2, 3, 2}, std::tuple{3, 2, 2}, std::tuple{4, 4, 4},
                                      std::tuple{1, 3, 1}, std::tuple{4, 1, 1});
  RailScene scene({static_cast<std::size_t>(a), static_cast<std::size_t>(b)});
  const auto count = static_cast<std::size_t>(rails);
  const auto couple = scene.couple_by_rails(count);

  CHECK(scene.rails(0, couple.there).size() == count);
  CHECK(scene.rails(1, couple.back).size() == count);
  CHECK(scene.all_up(couple));
}

TEST_CASE("hosts of many NICs connect with addresses of any family") {
  const int kind = GENERATE(4, 6, 255);
  RailScene scene({4, 4}, [&](NodePlan& plan) {
    plan.command.address_kind = plan.data.address_kind = static_cast<std::uint8_t>(kind);
    plan.command.packet_bytes = 576;
  });

  const auto couple = scene.couple(0, 1);

  // As many as fit into a HELLO of the fixed length.
  CHECK(scene.rails(0, couple.there).size() == (kind == 255 ? 1 : 4));
  CHECK(scene.run_until([&] { return scene.all_up(couple); }));
}

TEST_CASE("of equally good pairs both ends choose the same") {
  RailScene scene({3, 3});
  scene.network().set_reach(nic::Reach::kNone, nic::Reach::kDirect);

  const auto couple = scene.couple(0, 1);

  CHECK(scene.run_until([&] {
    return scene.rails(0, couple.there).size() >= 3 && scene.rails(1, couple.back).size() >= 3 &&
           scene.all_up(couple);
  }));
  check_mirrored(scene, couple);
}

TEST_CASE("a rail's report that arrives after a newer one is ignored") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  Instant used_again = kNever;
  bool came = false;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host != 0) return false;
    for (const wire::Frame& frame : Opened(passing.bytes).frames) {
      const auto report =
          frame.type == wire::FrameType::kRail ? wire::read_rail(frame) : std::nullopt;
      if (!report) continue;
      if (report->said == wire::RailSaid::kUsed) used_again = scene.now();
      if (report->said != wire::RailSaid::kDrained) continue;
      if (used_again == kNever || scene.now() - used_again < milliseconds(1)) return true;
      came = true;
    }
    return false;
  });

  const auto say = [&](auto what) {
    REQUIRE((scene.engine(0).*what)(scene.node(0).local_now(), "sim0.1") == Status::kOk);
    scene.node(0).touched();
  };
  say(&engine::Engine::drain_rail);
  scene.run_for(microseconds(100));
  say(&engine::Engine::restore_rail);
  REQUIRE(scene.run_until([&] { return came; }));
  for (int i = 0; i < 1000; ++i) {
    scene.run_for(microseconds(10));
    REQUIRE(scene.rail(1, couple.back, 1).state == RailState::kUp);
  }
}

TEST_CASE("a host that called from its second NIC is the same peer at its first NIC's address") {
  RailScene scene({2, 2});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  const auto couple = scene.couple(0, 1);
  REQUIRE(scene.rail(0, couple.there, 0).local != nic::to_string(scene.node(0).address()));
  scene.mend();
  REQUIRE(scene.run_until([&] { return scene.all_up(couple); }, seconds(5)));

  CHECK(scene.connect(1, 0) == couple.back);
}

TEST_CASE(
    "a host that called from its second NIC is the same peer at its first, whose rail is down") {
  RailScene scene({2, 2});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  const auto couple = scene.couple(0, 1);
  scene.mend();
  REQUIRE(scene.run_until([&] { return scene.all_up(couple); }, seconds(5)));
  scene.cut_both_ways(0);
  Stream stream(scene, couple, 10'000, 4);
  stream.run_for(milliseconds(300));
  REQUIRE_FALSE(scene.all_up(couple));

  CHECK(scene.connect(1, 0) == couple.back);
  CHECK(stream.finish());
}

// No packet reaches its first address, and none may ever: it is known from its HELLO only.
TEST_CASE("a peer whose addresses are believed is the same at every address it names") {
  const bool believed = GENERATE(true, false);
  const std::size_t nics_there = GENERATE(1u, 2u);
  CAPTURE(believed, nics_there);
  RailScene scene({2, nics_there},
                  [&](NodePlan& plan) { plan.config.believe_addresses = believed; });
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  scene.network().partitions().push_back(
      {.from = 1, .to = 0, .start = scene.now(), .end = scene.now() + kForever, .to_nic = 0});
  const auto couple = scene.couple(0, 1);
  REQUIRE(scene.rail(0, couple.there, 0).local != nic::to_string(scene.node(0).address()));

  const PeerId by_name = scene.connect(1, 0);
  CHECK((by_name == couple.back) == believed);
  Act& here = scene.receive(1, by_name, 5, 100);
  Act& there = scene.receive(0, couple.there, 6, 100);
  scene.send(0, couple.there, 5, 100);
  scene.send(1, by_name, 6, 100);
  scene.run_for(seconds(1));
  scene.mend();

  REQUIRE(scene.run_until_done(here));
  CHECK(here.status() == (believed ? Status::kOk : Status::kRefused));
  CHECK(there.done() == believed);
}

// It is called at its first address while it calls from its second NIC, before it has proved
// itself.
TEST_CASE("a caller from its second NIC that is called at its first becomes one peer") {
  const Duration after = GENERATE(milliseconds(0), milliseconds(40), milliseconds(200));
  const bool lower_calls = GENERATE(false, true);  // either may have the lower epoch
  const bool answered = GENERATE(true, false);     // else its address is still being resolved
  CAPTURE(after.count(), lower_calls, answered);
  RailScene scene({2, 2}, [](NodePlan& plan) { plan.command.resolve_delay = milliseconds(5); });
  if (lower_calls) scene.restart(0);
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  std::size_t calls = 0;
  std::size_t answers = 0;
  bool mute = true;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    calls += opened.is(PacketType::kHello) && passing.from.nic == 1;
    answers += opened.is(PacketType::kWelcome);
    return mute && opened.header && !opened.is(PacketType::kHello) &&
           !opened.is(PacketType::kWelcome);
  });
  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 5, 100);
  REQUIRE(scene.run_until([&] { return (answered ? answers : calls) > 0; }));
  scene.run_for(milliseconds(1));
  REQUIRE((answers > 0) == answered);

  const PeerId back = scene.connect(1, 0);
  Act& here = scene.receive(1, back, 5, 100);
  Act& reply = scene.receive(0, there, 6, 100);
  scene.send(1, back, 6, 100);
  scene.run_for(after);
  mute = false;
  scene.mend();

  REQUIRE(scene.run_until([&] { return here.done() && reply.done(); }, seconds(8)));
  CHECK(Scene::holds(here, 5, 100));
  CHECK(Scene::holds(reply, 6, 100));
  scene.run_for(seconds(2));
  CHECK(scene.stats(0).peers_connected == 1);
  CHECK(scene.stats(1).peers_connected == 1);
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
  CHECK(scene.engine(1).inspector().peer_state(back) == PeerState::kConnected);
}

// The simulator's seeds 92634 and 97385: a peer that has proved itself is not called again.
TEST_CASE(
    "a caller from its second NIC that is called at its first ends if it cannot resolve a data "
    "port") {
  RailScene scene({2, 2}, {}, [host = 0](NodePlan& plan) mutable {
    if (host++ == 1) plan.data.resolve_failure = 1'000'000;
  });
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  bool answered = false;
  bool mute = true;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    answered = answered || opened.is(PacketType::kWelcome);
    return mute && !opened.is(PacketType::kHello) && !opened.is(PacketType::kWelcome);
  });
  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 5, 1 << 20);  // not received: it keeps probing
  REQUIRE(scene.run_until([&] { return answered; }));

  const PeerId back = scene.connect(1, 0);
  Act& send = scene.send(1, back, 6, 10'000);
  mute = false;
  scene.mend();

  REQUIRE(scene.run_until_done(send));
  CHECK(send.status() == Status::kUnreachable);
}

TEST_CASE("an answer to an earlier call from the same NIC does not answer the newest") {
  RailScene scene({2, 2});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  std::vector<std::byte> first;  // WELCOME
  Passing way{};
  bool called_otherwise = false;
  bool came = false;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (came) return false;
    if (opened.is(wire::PacketType::kWelcome)) {
      if (first.empty()) {
        first.assign(passing.bytes.begin(), passing.bytes.end());
        way = passing;
      }
      return true;
    }
    if (!opened.is(wire::PacketType::kHello)) return false;
    if (passing.from.nic != 0) called_otherwise = true;
    if (passing.from.nic != 0 || !called_otherwise) return false;
    came = true;
    scene.network().inject(way.from, way.to, first, microseconds(1));
    return true;
  });

  const auto couple = scene.couple(0, 1);
  REQUIRE(scene.run_until([&] { return scene.rails(0, couple.there).size() > 1; }, seconds(10)));
  scene.run_for(seconds(1));

  REQUIRE(came);
  check_mirrored(scene, couple);
  CHECK(scene.all_up(couple));
}

TEST_CASE("two calls that cross, each answered, end in the same rails at both ends") {
  const auto cut = GENERATE(milliseconds(250), milliseconds(600), milliseconds(1200));
  const auto [a, b] = GENERATE(std::pair{2, 3}, std::pair{3, 2}, std::pair{2, 2});
  CAPTURE(cut.count(), a, b);
  RailScene scene({static_cast<std::size_t>(a), static_cast<std::size_t>(b)});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  const Instant mended = scene.now() + cut;
  scene.network().set_drop_rule([&](const Passing&) { return scene.now() < mended; });

  const PeerId there = scene.connect(0, 1);
  const PeerId back = scene.connect(1, 0);
  REQUIRE(scene.run_until(
      [&] { return scene.rails(0, there).size() > 1 && scene.rails(1, back).size() > 1; },
      seconds(10)));
  scene.run_for(seconds(2));

  CHECK(scene.all_up({there, back}));
  check_mirrored(scene, {there, back});
  Act& receive = scene.receive(1, back, 7, 200'000);
  scene.send(0, there, 7, 200'000);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 7, 200'000));
}

// wire.md 9.3: the end with the higher epoch declines two answers to its own call and takes the
// third; by then the other end has its answer. So rail 0 leaves by one pair of NICs and comes back
// by another.
Scene::Couple cross(RailScene& scene) {
  struct State {
    bool both_answered = false;
    bool both_taken = false;
    std::vector<std::byte> held;  // the higher epoch's answer, which comes late
    Passing way{};
  };
  const auto state = std::make_shared<State>();
  scene.cut_both_ways(0);
  const auto pass = [&](const Passing& way, std::span<const std::byte> bytes, int times) {
    while (times-- > 0) scene.network().inject(way.from, way.to, bytes, microseconds(1 + times));
  };
  scene.network().set_drop_rule([state, pass](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (state->both_taken || !opened.header || opened.is(PacketType::kHello)) return false;
    if (passing.from.host == 0) {
      if (!std::exchange(state->both_answered, true)) pass(passing, passing.bytes, 2);
      return false;
    }
    if (opened.is(PacketType::kWelcome)) {
      state->held.assign(passing.bytes.begin(), passing.bytes.end());
      state->way = passing;
      return true;
    }
    state->both_taken = true;  // it has proved itself, which is lost
    pass(state->way, state->held, 1);
    return true;
  });

  const PeerId there = scene.connect(0, 1);
  const PeerId back = scene.connect(1, 0);
  REQUIRE(scene.run_until([&] { return state->both_taken; }, seconds(10)));
  scene.mend();
  scene.run_for(seconds(2));
  REQUIRE(scene.rail(0, there, 0).local != scene.rail(1, back, 0).remote);
  return {there, back};
}

// The pairs by which they meet may be the pairing's, too: then there are two rails, else three.
const auto kAlike = {nic::Reach::kDirect, nic::Reach::kNone};

TEST_CASE("of two calls that cross, each taken, rail 0 works like other rails") {
  const auto alike = GENERATE(values(kAlike));
  const int narrow = GENERATE(-1, 0, 1);  // the host with a NIC of shorter packets
  CAPTURE(static_cast<int>(alike), narrow);
  RailScene scene({2, 2}, {}, [&, host = 0](NodePlan& plan) mutable {
    if (host++ == narrow) plan.more[0].data.packet_bytes = 1200;
  });
  scene.network().set_reach(alike, nic::Reach::kRouted);
  const auto couple = cross(scene);

  const auto here = scene.rails(0, couple.there);
  const auto other = scene.rails(1, couple.back);
  REQUIRE(here.size() == (alike == nic::Reach::kNone ? 2 : 3));
  REQUIRE(here.size() == other.size());
  for (std::size_t i = 1; i < here.size(); ++i) CHECK(here[i].local == other[i].remote);
  CHECK(scene.all_up(couple));
  REQUIRE(scene.engine(0).begin_check(scene.node(0).local_now(), couple.there, seconds(1)) ==
          Status::kOk);
  scene.node(0).touched();
  scene.run_for(seconds(2));
  for (const RailView& view : scene.rails(0, couple.there)) {
    CAPTURE(view.number);
    CHECK(view.check == RailFinding::kFine);
  }

  scene.network().partitions().push_back({.from = 0,
                                          .to = 1,
                                          .start = scene.now(),
                                          .end = scene.now() + milliseconds(200),
                                          .from_nic = 1});
  Stream stream(scene, couple, 10'000, 4);
  stream.run_for(milliseconds(20));
  CHECK_FALSE(scene.all_up(couple));
  CHECK(stream.finish());
  scene.run_for(seconds(2));
  CHECK(scene.all_up(couple));
}

TEST_CASE("a NIC that is drained is also left by a rail that only arrives at it") {
  const auto alike = GENERATE(values(kAlike));
  CAPTURE(static_cast<int>(alike));
  RailScene scene({2, 2});
  scene.network().set_reach(alike, nic::Reach::kRouted);
  const auto couple = cross(scene);
  REQUIRE(scene.all_up(couple));
  const bool second = scene.rail(0, couple.there, 0).nic == "sim0";
  const std::string in = second ? "sim0.1" : "sim0";  // at which rail 0 arrives

  const Status drained = scene.engine(0).drain_rail(scene.node(0).local_now(), in);

  if (alike == nic::Reach::kNone) {
    CHECK(drained == Status::kBusy);  // both rails need it
    return;
  }
  REQUIRE(drained == Status::kOk);
  scene.node(0).touched();
  scene.run_for(milliseconds(500));
  CHECK(scene.rail(1, couple.back, 0).state == RailState::kDrained);
  Act& receive = scene.receive(1, couple.back, 7, 200'000);
  scene.send(0, couple.there, 7, 200'000);
  REQUIRE(scene.run_until_done(receive));
}

}  // namespace
}  // namespace pullman::sim
