// Scenarios: how peers connect. They are the specification.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

TEST_CASE("first messages are early data behind the HELLO") {
  Scene scene;
  std::vector<PacketType> sent;
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.from.host == 0) sent.push_back(Opened(passing.bytes).header->type);
  });
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 9, 100));
  // Only the proof followed, after the WELCOME.
  CHECK(sent == std::vector{PacketType::kHello, PacketType::kControl});
}

TEST_CASE("a lost HELLO and a lost WELCOME are repeated, and the first message arrives once") {
  const int lost = GENERATE(1, 2, 3);
  const std::uint8_t loser = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  Scene scene;
  scene.network().set_drop_rule([&, n = lost](const Passing& passing) mutable {
    return passing.from.host == loser && n-- > 0;
  });
  Act& receive = scene.receive_any(1);
  Act& none = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 9, 100));
  REQUIRE(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected; }));
  scene.run_for(seconds(2));
  CHECK_FALSE(none.done());
}

// wire.md 7.3: an answer resets the backoff.
TEST_CASE("HELLOs lost before the WELCOME do not delay the recovery of packets lost after it") {
  const std::size_t lost = GENERATE(0u, 1u, 4u);
  CAPTURE(lost);
  Scene scene;
  std::size_t calls = 0;
  Instant answered{};
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (opened.is(PacketType::kHello)) return calls++ < lost;
    if (opened.is(PacketType::kWelcome)) {
      answered = scene.now();
      return false;
    }
    return scene.now() < answered + milliseconds(1);
  });
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 10'000);

  REQUIRE(scene.run_until_done(receive));
  CHECK(calls == lost + 1);
  CHECK(scene.now() - answered < milliseconds(10));
}

// The acceptor may not keep the place of an unproved caller for long.
TEST_CASE("a lost proof is repeated soon, although HELLOs before it were lost, too") {
  const std::size_t lost = GENERATE(0u, 1u, 4u);
  CAPTURE(lost);
  Scene scene;
  std::size_t calls = 0;
  std::size_t proofs = 0;
  Instant answered{};
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (opened.is(PacketType::kHello)) return calls++ < lost;
    if (opened.is(PacketType::kWelcome)) answered = scene.now();
    return passing.from.host == 0 && proofs++ < 2;
  });

  scene.connect(0, 1);

  REQUIRE(scene.run_until([&] { return scene.accept(1).has_value(); }));
  CHECK(calls == lost + 1);
  CHECK(scene.now() - answered < milliseconds(10));
}

// wire.md 5.9; the simulator's seeds 11180, 11228, 29157, 33250.
TEST_CASE("a lost proof is repeated, even by a caller that has nothing more to send") {
  const int lost = GENERATE(1, 3);
  Scene scene;
  scene.network().set_drop_rule([&, n = lost](const Passing& passing) mutable {
    return passing.from.host == 0 && !Opened(passing.bytes).is(PacketType::kHello) && n-- > 0;
  });
  Act& at_one = scene.receive_any(1);
  Act& at_zero = scene.receive_any(0);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);
  scene.run_for(microseconds(100));
  const PeerId back = scene.connect(1, 0);
  scene.send(1, back, 7, 100);

  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }));
  CHECK(Scene::holds(at_one, 9, 100));
  CHECK(Scene::holds(at_zero, 7, 100));
}

TEST_CASE("a HELLO is acknowledged when its early data is delivered, not before") {
  Scene scene;
  bool acked_by_welcome = false;
  scene.network().set_observer([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (opened.is(PacketType::kWelcome)) acked_by_welcome = opened.header->has(wire::kFlagAck);
  });
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive));
  CHECK_FALSE(acked_by_welcome);
  REQUIRE(
      scene.run_until([&] { return scene.engine(0).inspector().audit().packets_in_flight == 0; }));
  CHECK(scene.stats(0).probes_sent == 0);
}

TEST_CASE("connecting twice gives the same handle") {
  Scene scene;

  const PeerId first = scene.connect(0, 1);
  const PeerId second = scene.connect(0, 1);
  scene.run_for(milliseconds(10));
  const PeerId third = scene.connect(0, 1);

  CHECK(first == second);
  CHECK(first == third);
}

TEST_CASE("simultaneous connects end in one peer on each side") {
  const Duration head_start =
      GENERATE(microseconds(0), microseconds(1), microseconds(4), microseconds(5), microseconds(9));
  const bool with_loss = GENERATE(false, true);
  Scene scene;
  if (with_loss) scene.network().wire(0, 1).loss = scene.network().wire(1, 0).loss = 300'000;
  Act& at_one = scene.receive_any(1);
  Act& at_zero = scene.receive_any(0);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 1, 100);
  scene.run_for(head_start);
  const PeerId back = scene.connect(1, 0);
  scene.send(1, back, 2, 100);

  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }));
  scene.run_for(seconds(1));
  CHECK(Scene::holds(at_one, 1, 100));
  CHECK(Scene::holds(at_zero, 2, 100));
  CHECK(at_one.request.source() == back);
  CHECK(at_zero.request.source() == there);
  for (std::size_t host : {0u, 1u}) CHECK(scene.stats(host).peers_connected == 1);
}

// wire.md 5.6. Either host may have the lower epoch: one that restarts draws another.
TEST_CASE("connects that cross cost a few round trips and no retransmission") {
  const Duration head_start =
      GENERATE(microseconds(0), microseconds(1), microseconds(4), microseconds(5), microseconds(9),
               microseconds(14), microseconds(21), microseconds(35));
  const Duration slow_zero = GENERATE(microseconds(0), microseconds(3), microseconds(20));
  const Duration slow_one = GENERATE(microseconds(0), microseconds(3), microseconds(20));
  const std::size_t first = GENERATE(0u, 1u);
  const std::size_t messages = GENERATE(1u, 20u);
  CAPTURE(head_start.count(), slow_zero.count(), slow_one.count(), first, messages);
  std::size_t host = 0;
  Scene scene(2, [&](NodePlan& plan) {
    plan.command.resolve_delay = plan.data.resolve_delay = host++ == 0 ? slow_zero : slow_one;
  });
  std::array<std::vector<Act*>, 2> receives;
  for (std::size_t i = 0; i < 2 * messages; ++i) {
    receives[i % 2].push_back(&scene.receive_any(i % 2, 2000));
  }
  std::array<Act*, 2> none = {&scene.receive_any(0), &scene.receive_any(1)};
  const auto call = [&](std::size_t from) {
    const PeerId there = scene.connect(from, 1 - from);
    for (Tag tag = 0; tag < messages; ++tag) scene.send(from, there, tag, 100 + 90 * tag);
    return there;
  };
  const auto all_done = [&] {
    return std::all_of(receives.begin(), receives.end(), [](const auto& acts) {
      return std::all_of(acts.begin(), acts.end(), [](Act* act) { return act->done(); });
    });
  };

  std::array<PeerId, 2> handles;
  const Instant start = scene.now();
  handles[first] = call(first);
  scene.run_for(head_start);
  handles[1 - first] = call(1 - first);
  REQUIRE(scene.run_until(all_done, seconds(2)));
  const Duration took = scene.now() - start;

  // A round trip is 10 us; four addresses are resolved, two of them one after the other.
  CHECK(took <= head_start + 2 * (slow_zero + slow_one) + microseconds(50));
  scene.run_for(seconds(1));
  for (const std::size_t at : {0u, 1u}) {
    for (Tag tag = 0; tag < messages; ++tag) {
      CHECK(Scene::holds(*receives[at][tag], tag, 100 + 90 * tag));
      CHECK(receives[at][tag]->request.source() == handles[at]);
    }
    CHECK_FALSE(none[at]->done());
    CHECK(scene.stats(at).retransmits == 0);
    CHECK(scene.stats(at).timeouts == 0);
    CHECK(scene.stats(at).peers_connected == 1);
    CHECK(scene.engine(at).inspector().audit().windows_in_use == 0);
  }
}

// The simulator's seeds 1128 and 3668: a caller that cannot know of its success calls again, and
// its early data is not delivered twice.
TEST_CASE("the early data of a caller that is cut off when its HELLO was accepted arrives once") {
  const auto cut_from = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  const Duration heard_for = GENERATE(microseconds(5), microseconds(6), microseconds(11));
  const Duration cut_for = GENERATE(milliseconds(50), seconds(3), seconds(9), seconds(13));
  const bool called_back = GENERATE(false, true);
  CAPTURE(int{cut_from}, heard_for.count(), cut_for.count(), called_back);
  Scene scene;
  std::vector<Act*> receives;
  for (int i = 0; i < 4; ++i) receives.push_back(&scene.receive_any(1));

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);
  scene.run_for(heard_for);
  scene.network().partitions().push_back({.from = cut_from,
                                          .to = static_cast<std::uint8_t>(1 - cut_from),
                                          .start = scene.now(),
                                          .end = scene.now() + cut_for});
  if (called_back) {
    // The call back ends before the caller knows of it.
    const PeerId back = scene.connect(1, 0);
    scene.run_for(milliseconds(1));
    scene.disconnect(1, back);
  }
  scene.run_for(cut_for + seconds(12));

  const auto is_done = [](Act* act) { return act->done(); };
  const auto heard = std::count_if(receives.begin(), receives.end(), is_done);
  const bool lived = !called_back && cut_for < seconds(10);
  CHECK(heard <= 1);
  if (lived) CHECK(heard == 1);
  if (heard == 1) CHECK(Scene::holds(*receives[0], 9, 100));
  if (lived) CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
}

// Loses what leaves or arrives by one NIC of a host.
void cut_nic(RailScene& scene, std::uint8_t host, std::uint8_t nic, bool outward, bool inward) {
  const std::uint8_t other = 1 - host;
  const Instant end = scene.now() + seconds(1000);
  if (outward) {
    scene.network().partitions().push_back(
        {.from = host, .to = other, .start = scene.now(), .end = end, .from_nic = nic});
  }
  if (inward) {
    scene.network().partitions().push_back(
        {.from = other, .to = host, .start = scene.now(), .end = end, .to_nic = nic});
  }
}

TEST_CASE("a call from a NIC that is cut off is repeated from another that reaches the address") {
  const auto [outward, inward] =
      GENERATE(std::pair{true, true}, std::pair{true, false}, std::pair{false, true});
  const std::size_t nics_here = GENERATE(2u, 3u);
  const std::size_t nics_there = GENERATE(1u, 2u, 3u);
  CAPTURE(outward, inward, nics_here, nics_there);
  RailScene scene({nics_here, nics_there});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  cut_nic(scene, 0, 0, outward, inward);
  Act& receive = scene.receive_any(1);
  Act& none = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);
  REQUIRE(scene.run_until_done(receive, seconds(2)));

  CHECK(Scene::holds(receive, 9, 100));
  const auto back = scene.accept(1);
  REQUIRE(back);
  scene.run_for(seconds(2));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
  const RailView home = scene.rail(0, there, 0);
  const RailView mirrored = scene.rail(1, *back, 0);
  CHECK(home.local == mirrored.remote);
  CHECK(home.remote == mirrored.local);
  CHECK(scene.rails(0, there).size() == scene.rails(1, *back).size());
  Act& large = scene.receive(0, there, 1, 200'000);
  scene.send(1, *back, 1, 200'000);
  REQUIRE(scene.run_until_done(large));
  CHECK(Scene::holds(large, 1, 200'000));
  CHECK_FALSE(none.done());
}

TEST_CASE("a call from a NIC whose link goes down is repeated from another at once") {
  const bool before = GENERATE(false, true);
  RailScene scene({2, 1});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  Act& receive = scene.receive_any(1);
  if (before) {
    scene.trouble(0, 0, NicTrouble::Kind::kUnplugged);
    scene.run_for(milliseconds(1));
  }
  const Instant start = scene.now();

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);
  if (!before) {
    scene.trouble(0, 0, NicTrouble::Kind::kUnplugged);
    scene.trouble(1, 0, NicTrouble::Kind::kDead, milliseconds(50));
  }

  REQUIRE(scene.run_until_done(receive));
  CHECK(scene.now() - start < milliseconds(before ? 1 : 250));
}

TEST_CASE("a call from a NIC that takes nothing to send is repeated from another") {
  RailScene scene({2, 1});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.trouble(0, 0, NicTrouble::Kind::kStuck);
  Act& receive = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 9, 100);

  REQUIRE(scene.run_until_done(receive, seconds(2)));
  CHECK(Scene::holds(receive, 9, 100));
}

TEST_CASE("calls that cross between hosts whose first NICs are cut off end in one connection") {
  const Duration head_start = GENERATE(milliseconds(0), milliseconds(70), milliseconds(250));
  const std::size_t first = GENERATE(0u, 1u);
  const bool at_one_end = GENERATE(false, true);
  CAPTURE(head_start.count(), first, at_one_end);
  RailScene scene({2, 2});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  // Cuts the wire between the first two NICs; the second ones still reach each other's first.
  scene.cut_both_ways(0);
  if (at_one_end) cut_nic(scene, 0, 0, true, false);
  std::array<Act*, 2> receives = {&scene.receive_any(0), &scene.receive_any(1)};
  std::array<Act*, 2> none = {&scene.receive_any(0), &scene.receive_any(1)};
  std::array<PeerId, 2> handles;
  const auto call = [&](std::size_t from) {
    handles[from] = scene.connect(from, 1 - from);
    scene.send(from, handles[from], from, 100);
  };

  call(first);
  scene.run_for(head_start);
  call(1 - first);

  REQUIRE(scene.run_until([&] { return receives[0]->done() && receives[1]->done(); }, seconds(8)));
  scene.run_for(seconds(2));
  for (const std::size_t at : {0u, 1u}) {
    CHECK(Scene::holds(*receives[at], 1 - at, 100));
    CHECK_FALSE(none[at]->done());
    CHECK(scene.engine(at).inspector().peer_state(handles[at]) == PeerState::kConnected);
  }
  CHECK(scene.rails(0, handles[0]).size() == scene.rails(1, handles[1]).size());
  CHECK(scene.rail(0, handles[0], 0).local == scene.rail(1, handles[1], 0).remote);
  CHECK(scene.rail(0, handles[0], 0).remote == scene.rail(1, handles[1], 0).local);
}

// wire.md 5.5: nor does it matter how often the pair of NICs changes.
TEST_CASE("a caller that calls from many NICs in turn has no more answers than its HELLOs") {
  RailScene scene({4, 1});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  std::size_t calls = 0;
  std::size_t answers = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    calls += opened.is(PacketType::kHello);
    answers += opened.is(PacketType::kWelcome);
    return opened.is(PacketType::kWelcome);
  });

  scene.connect(0, 1);
  scene.run_for(seconds(9));

  CHECK(calls >= 8);
  CHECK(answers <= calls);
  CHECK(answers + 1 >= calls);
}

// The simulator's seed 16954. The acceptor has HELLOs of two processes at one address, the earlier
// of which has ended, and calls back: it takes the earlier process for the one it calls, and makes
// the later one another peer.
TEST_CASE("calls that cross while one process restarts end in one connection at both ends") {
  const int restarts = GENERATE(1, 2, 3, 4, 5, 6);  // either host may have the lower epoch
  const bool looks_late = GENERATE(false, true);
  const Duration late = GENERATE(microseconds(0), microseconds(7), microseconds(12));
  CAPTURE(restarts, looks_late, late.count());
  Scene scene(2, [](NodePlan& plan) {
    plan.command.resolve_delay = plan.data.resolve_delay = microseconds(5);
  });
  const Instant looks = scene.now() + milliseconds(50);
  scene.node(1).stall_until(looks);
  scene.connect(0, 1);
  scene.run_for(microseconds(20));
  for (int i = 0; i < restarts; ++i) scene.restart(0);
  std::vector<PeerId> at_zero = {scene.connect(0, 1)};
  scene.run_until([&] { return scene.now() >= looks; });
  scene.run_for(microseconds(1));

  std::vector<PeerId> at_one = {scene.connect(1, 0)};
  scene.run_for(microseconds(6));
  if (looks_late) scene.node(1).stall_until(scene.now() + milliseconds(1));
  if (late.count() != 0) scene.node(0).stall_until(scene.now() + late);
  scene.run_for(seconds(2));

  const auto connected = [&](std::size_t host, std::vector<PeerId>& known) {
    while (const auto caller = scene.accept(host)) known.push_back(*caller);
    std::sort(known.begin(), known.end(), [](PeerId a, PeerId b) { return a.index < b.index; });
    known.erase(std::unique(known.begin(), known.end()), known.end());
    std::erase_if(known, [&](PeerId id) {
      return scene.engine(host).inspector().peer_state(id) != PeerState::kConnected;
    });
    return known.size();
  };
  REQUIRE(connected(0, at_zero) == 1);
  REQUIRE(connected(1, at_one) == 1);
  Act& there = scene.receive(1, at_one[0], 1, 100);
  Act& back = scene.receive(0, at_zero[0], 2, 100);
  scene.send(0, at_zero[0], 1, 100);
  scene.send(1, at_one[0], 2, 100);
  CHECK(scene.run_until([&] { return there.done() && back.done(); }, seconds(1)));
  CHECK(Scene::holds(there, 1, 100));
  CHECK(Scene::holds(back, 2, 100));
}

}  // namespace
}  // namespace pullman::sim
