// Scenarios: NICs that are added, and addresses that change, during a connection (wire.md 9.11).
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The last NIC of each host comes late.
RailScene::Tweak one_late() {
  return [](NodePlan& plan) { plan.late = 1; };
}

bool have_rails(RailScene& scene, Scene::Couple couple, std::size_t count) {
  return scene.rails(0, couple.there).size() == count &&
         scene.rails(1, couple.back).size() == count && scene.all_up(couple);
}

// Returns whether one end's local addresses are the other end's remote ones.
bool are_mirrored(RailScene& scene, Scene::Couple couple) {
  const auto here = scene.rails(0, couple.there);
  const auto there = scene.rails(1, couple.back);
  return std::equal(here.begin(), here.end(), there.begin(), there.end(),
                    [](const RailView& a, const RailView& b) {
                      return a.number == b.number && a.local == b.remote && a.remote == b.local;
                    });
}

// Makes all wires 1 Gb/s.
void slow_down(RailScene& scene) {
  for (const std::uint8_t nic : {0, 1}) {
    scene.change_wires(nic, [](WireFaults& wire) { wire.ns_per_kib = kGigabit; });
  }
}

bool carries(RailScene& scene, Scene::Couple couple, std::size_t number) {
  const auto sent = [&] { return scene.rail(0, couple.there, number).bytes_sent; };
  const std::uint64_t before = sent();
  Stream stream(scene, couple, 1'000'000, 8);  // more than one rail takes at once
  for (int i = 0; i < 100 && sent() == before; ++i) stream.run_for(microseconds(100));
  return stream.finish() && sent() > before;
}

TEST_CASE("a NIC that both hosts add while they are connected becomes a rail, and carries") {
  const auto [a, b] = GENERATE(std::pair{2, 2}, std::pair{3, 3}, std::pair{4, 4});
  const bool server_first = GENERATE(false, true);
  RailScene scene({static_cast<std::size_t>(a), static_cast<std::size_t>(b)}, {}, one_late());
  const auto before = static_cast<std::size_t>(a) - 1;
  const auto couple = scene.couple_by_rails(before);
  REQUIRE(scene.rails(0, couple.there).size() == before);

  scene.node(server_first ? 1 : 0).join();
  scene.run_for(milliseconds(5));
  scene.node(server_first ? 0 : 1).join();

  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, before + 1); }, seconds(5)));
  CHECK(carries(scene, couple, before));
}

TEST_CASE("NICs that both hosts add at the same moment become a rail") {
  RailScene scene({2, 2}, {}, one_late());
  const auto couple = scene.couple_by_rails(1);

  scene.node(0).join();
  scene.node(1).join();

  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
  CHECK(carries(scene, couple, 1));
}

TEST_CASE(
    "a NIC added during a stream carries a part of it, although the first announcements are lost") {
  RailScene scene({2, 2}, {}, one_late());
  const auto couple = scene.couple_by_rails(1);
  slow_down(scene);
  int lost = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const bool tells = Opened(passing.bytes).has(wire::FrameType::kNics);
    return tells && lost++ < 4;
  });
  Stream stream(scene, couple, 50'000, 8);
  stream.run_for(milliseconds(20));

  scene.node(0).join();
  scene.node(1).join();
  stream.run_for(milliseconds(300));

  CHECK(stream.finish());
  CHECK(lost >= 4);
  REQUIRE(have_rails(scene, couple, 2));
  CHECK(scene.rail(0, couple.there, 1).bytes_sent > 0);
}

TEST_CASE("a NIC added while the peer's address is being resolved is announced once") {
  RailScene scene(
      {2, 2}, [](NodePlan& plan) { plan.data.resolve_delay = milliseconds(200); }, one_late());
  const auto couple = scene.couple(0, 1);
  int told = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (Opened(passing.bytes).has(wire::FrameType::kNics)) ++told;
    return false;
  });

  scene.node(0).join();
  scene.run_for(milliseconds(5));

  CHECK(told == 1);
  scene.node(1).join();
  CHECK(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
}

TEST_CASE("a later peer is told of a NIC that was added before") {
  RailScene scene({2, 2}, {}, one_late());
  scene.node(0).join();
  scene.node(1).join();

  const auto couple = scene.couple_by_rails(2);

  CHECK(have_rails(scene, couple, 2));
}

TEST_CASE("a NIC that only one host adds changes nothing") {
  RailScene scene({2, 1}, {}, [](NodePlan& plan) { plan.late = plan.more.size(); });
  const auto couple = scene.couple_by_rails(1);

  scene.node(0).join();
  Stream stream(scene, couple, 10'000, 4);
  stream.run_for(milliseconds(10));

  CHECK(stream.finish());
  CHECK(scene.rails(0, couple.there).size() == 1);
}

TEST_CASE("a stream goes on when the only address of an end changes") {
  const std::size_t mover = GENERATE(0u, 1u);
  RailScene scene({1, 1});
  slow_down(scene);
  const auto couple = scene.couple(0, 1);
  Stream stream(scene, couple, 50'000, 8);
  stream.run_for(milliseconds(20));
  const std::size_t before = stream.arrived();

  for (int i = 0; i < 3; ++i) {
    scene.node(mover).move(0);
    stream.run_for(milliseconds(300));
  }

  CHECK(stream.arrived() > before);
  CHECK(stream.finish());
}

TEST_CASE("a rail goes on at the new address of its NIC") {
  const std::size_t mover = GENERATE(0u, 1u);
  const std::uint8_t moved = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  RailScene scene({2, 2});
  slow_down(scene);
  const auto couple = scene.couple_by_rails(2);
  Stream stream(scene, couple, 50'000, 8);
  stream.run_for(milliseconds(20));

  scene.node(mover).move(moved);
  stream.run_for(milliseconds(300));

  CHECK(stream.finish());
  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
  CHECK(carries(scene, couple, 0));
  CHECK(carries(scene, couple, 1));
}

// The hosts met by NICs of different numbers, both better used otherwise: seeds 54979 and 59306.
TEST_CASE("two rails that share a NIC both go on at its new address") {
  const std::size_t mover = GENERATE(0u, 1u);
  const std::uint8_t moved = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  CAPTURE(mover, moved);
  RailScene scene({2, 2});
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  scene.cut_both_ways(0);
  const auto couple = scene.couple(0, 1);
  scene.mend();
  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 3); }, seconds(5)));
  REQUIRE(scene.rail(0, couple.there, 0).local == scene.rail(0, couple.there, 2).local);
  REQUIRE(scene.rail(0, couple.there, 0).remote == scene.rail(0, couple.there, 1).remote);

  scene.node(mover).move(moved);

  REQUIRE(scene.run_until([&] { return are_mirrored(scene, couple); }, seconds(5)));
  CHECK(scene.run_until([&] { return have_rails(scene, couple, 3); }, seconds(5)));
}

// Replaces NIC 1 of the host by another one, as the kernel would report it.
void replace_nic(RailScene& scene, std::uint8_t host, std::uint32_t mbps) {
  Node& node = scene.node(host);
  scene.network().renumber({host, 1});
  engine::NicPorts ports;
  ports.command = scene.network().open({host, Channel::kCommand, 1}, node.plan().more[0].command);
  ports.data = scene.network().open({host, Channel::kData, 1}, node.plan().more[0].data);
  ports.device.driver = "sim";
  ports.device.name = node.name_of(1);
  ports.device.mbps = mbps;
  REQUIRE(node.engine().set_nic(node.local_now(), 1, std::move(ports)));
  node.touched();
}

// With the new NIC the pairing would be crosswise; the peer has heard of the old one.
TEST_CASE(
    "a NIC that changes during the handshake leaves both ends with the same rails, wire.md 9.2") {
  const auto [host, lost] = GENERATE(std::tuple{0, "WELCOME"}, std::tuple{0, "WAYS"},
                                     std::tuple{1, "WAYS"}, std::tuple{1, "WELCOME"});
  CAPTURE(host, lost);
  RailScene scene({2, 2}, {}, [host = host, i = 0](NodePlan& plan) mutable {
    plan.mbps = i++ == host ? 5000 : 10'000;
    plan.more[0].mbps = 1000;
  });
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kDirect);
  scene.network().set_drop_rule([&, host = host, lost = std::string(lost)](const Passing& passing) {
    const Opened packet(passing.bytes);
    return lost == "WAYS" ? passing.from.host != host && packet.has(wire::FrameType::kWays)
                          : packet.is(wire::PacketType::kWelcome);
  });
  const PeerId there = scene.connect(0, 1);
  scene.run_for(milliseconds(1));

  replace_nic(scene, static_cast<std::uint8_t>(host), 40'000);
  scene.run_for(milliseconds(1));
  scene.network().set_drop_rule({});

  std::optional<PeerId> back;
  REQUIRE(scene.run_until([&] { return (back = scene.accept(1)).has_value(); }, seconds(1)));
  const Scene::Couple couple{.there = there, .back = *back};
  const auto agree = [&] {
    return scene.rails(0, couple.there).size() > 1 && are_mirrored(scene, couple) &&
           scene.all_up(couple);
  };
  CHECK(scene.run_until(agree, seconds(5)));
  scene.run_for(milliseconds(100));
  CHECK(agree());
}

// The simulator's seed 9513, in which the home rail delayed all others.
TEST_CASE("rails that cannot resolve the peer from a new address are up when they can") {
  const std::size_t mover = GENERATE(0u, 1u);
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  scene.node(mover).fail_resolving(800'000);

  scene.node(mover).move(0);
  scene.node(mover).move(1);

  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(20)));
  CHECK(carries(scene, couple, 0));
  CHECK(carries(scene, couple, 1));
}

TEST_CASE("of the lists that announce a NIC's address only the newest is repeated, wire.md 9.11") {
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  bool deaf = true;
  int told = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const bool tells = Opened(passing.bytes).has(wire::FrameType::kNics);
    told += tells ? 1 : 0;
    return deaf && tells;
  });
  constexpr int kMoves = 150;  // more than half the range of eight bits
  for (int i = 0; i < kMoves; ++i) {
    scene.node(1).move(0);
    scene.run_for(std::chrono::microseconds(100));
  }
  scene.run_for(milliseconds(100));

  deaf = false;
  told = 0;
  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
  scene.run_for(milliseconds(100));

  CHECK(told < kMoves / 10);
  CHECK(carries(scene, couple, 0));
}

TEST_CASE("a call under way goes on from a new address") {
  RailScene scene({1, 1});
  scene.cut_both_ways(0);
  const PeerId there = scene.connect(0, 1);
  scene.run_for(milliseconds(50));

  scene.node(0).move(0);
  scene.mend();

  CHECK(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected; }));
}

TEST_CASE("two ends whose only addresses change at the same moment time out") {
  RailScene scene({1, 1});
  const auto couple = scene.couple(0, 1);
  Act& act = scene.send(0, couple.there, 1, 1000);
  scene.node(0).move(0);
  scene.node(1).move(0);

  REQUIRE(scene.run_until_done(act, seconds(60)));
}

// --- further addresses of a NIC

// Makes all NICs behind the first `nics` of a host further addresses of those, in turn.
RailScene::Tweak addresses_of(std::size_t nics) {
  return [nics](NodePlan& plan) {
    for (std::size_t i = nics; i < plan.nics(); ++i) plan.more[i - 1].address_of = i % nics;
  };
}

// Connects host 0 to host 1 at that NIC's address; both ends are connected then.
Scene::Couple meet_at(RailScene& scene, std::uint8_t nic) {
  const auto there = address_of({1, Channel::kCommand, nic});
  Scene::Couple couple{scene.engine(0).connect(scene.node(0).local_now(), there).peer, {}};
  scene.node(0).touched();
  std::optional<PeerId> back;
  scene.run_until([&] {
    if (!back) back = scene.accept(1);
    return back && scene.engine(0).inspector().peer_state(couple.there) == PeerState::kConnected;
  });
  REQUIRE(back);
  couple.back = *back;
  scene.run_for(milliseconds(50));
  return couple;
}

TEST_CASE("a peer can be called at any address of its NIC, and the others do not become rails") {
  const std::uint8_t nic = GENERATE(0, 1, 2);
  RailScene scene({3, 3}, {}, addresses_of(1));
  const auto couple = meet_at(scene, nic);

  REQUIRE(scene.rails(0, couple.there).size() == 1);
  REQUIRE(scene.rails(1, couple.back).size() == 1);
  const Act& got = scene.receive_any(1, 100'000);
  scene.send(0, couple.there, 7, 100'000);
  REQUIRE(scene.run_until_done(got));
  const Act& back = scene.receive_any(0, 100'000);
  scene.send(1, couple.back, 8, 100'000);
  REQUIRE(scene.run_until_done(back));
}

TEST_CASE("two NICs of two addresses each are two rails, whichever address is called") {
  const std::uint8_t nic = GENERATE(0, 1, 2, 3);
  RailScene scene({4, 4}, {}, addresses_of(2));
  const auto couple = meet_at(scene, nic);

  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
  const auto rails = scene.rails(0, couple.there);
  CHECK(rails[0].nic != rails[1].nic);
  CHECK(carries(scene, couple, 0));
  CHECK(carries(scene, couple, 1));
}

TEST_CASE("a late NIC of two addresses makes one rail, beside one met at a second address") {
  RailScene scene({4, 4}, {}, [](NodePlan& plan) {
    plan.more[0].address_of = 0;
    plan.more[2].address_of = 2;
    plan.late = 2;
  });
  const auto couple = meet_at(scene, 1);
  REQUIRE(scene.rails(0, couple.there).size() == 1);

  for (const std::size_t host : {0, 1, 0, 1}) scene.node(host).join();

  REQUIRE(scene.run_until([&] { return have_rails(scene, couple, 2); }, seconds(5)));
  scene.run_for(seconds(1));
  CHECK(have_rails(scene, couple, 2));
  CHECK(carries(scene, couple, 1));
}

TEST_CASE("a peer whose address is removed goes on at another one of its NIC") {
  const std::size_t host = GENERATE(0, 1);
  RailScene scene({2, 2}, {}, addresses_of(1));
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kRouted);
  const auto couple = meet_at(scene, 0);
  Stream stream(scene, couple, 100'000, 8);
  stream.run_for(milliseconds(2));

  scene.cut_both_ways(0);
  REQUIRE(!scene.engine(host).is_in_use(1));
  REQUIRE(scene.engine(host).move_nic(scene.node(host).local_now(), 1, 0));
  scene.node(host).touched();
  stream.run_for(milliseconds(50));

  CHECK(stream.finish());
  CHECK(scene.rails(host, host == 0 ? couple.there : couple.back).size() == 1);
}

}  // namespace
}  // namespace pullman::sim
