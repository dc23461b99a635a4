// Scenarios: the connectivity check. What it finds on rails that work, that do not work and that
// lead to the wrong host, and what it must not disturb.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/rail_scene.h"
#include "wire/check.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

constexpr std::size_t kLong = 1472;  // the largest packet of these NICs

class CheckScene : public RailScene {
 public:
  using RailScene::RailScene;
  CheckScene(std::size_t count, const Tweak& tweak = {}) : RailScene({count, count}, tweak) {}

  Status begin_check(std::size_t host, PeerId peer, Duration limit = seconds(1)) {
    const Status status = engine(host).begin_check(node(host).local_now(), peer, limit);
    node(host).touched();
    return status;
  }
  std::vector<RailCheck> check(std::size_t host, PeerId peer, Duration limit = seconds(1)) {
    REQUIRE(begin_check(host, peer, limit) == Status::kOk);
    const Instant start = now();
    REQUIRE(run_until([&] { return engine(host).check_result(peer).has_value(); }, 2 * limit));
    took_ = now() - start;
    return *engine(host).check_result(peer);
  }
  // How long the last check took.
  Duration took() const { return took_; }

  std::vector<RailFinding> findings(std::size_t host, PeerId peer) {
    std::vector<RailFinding> found;
    for (const RailCheck& row : check(host, peer)) found.push_back(row.finding);
    return found;
  }
  // Connects the hosts and waits until the checks of new rails are over.
  Couple settled(std::size_t count) {
    const Couple met = couple_by_rails(count);
    run_for(milliseconds(1200));
    return met;
  }
  // Drops longer packets from that NIC of that host.
  void narrow(std::uint8_t from, std::uint8_t nic, std::size_t bytes) {
    network().set_drop_rule([=](const Passing& passing) {
      return passing.from.host == from && passing.from.nic == nic && passing.bytes.size() > bytes;
    });
  }
  // Delivers to host 2 as if it had host 1's address: a CHECK then names host 2's own as called.
  void deliver_to_namesake(const Passing& passing, Duration delay) {
    const Endpoint to{2, passing.to.channel, passing.to.nic};
    std::vector<std::byte> bytes(passing.bytes.begin(), passing.bytes.end());
    if (const Opened opened(bytes); opened.has(wire::FrameType::kCheck)) {
      auto check = *wire::decode_check(opened.frames.front().data);
      check.called = address_of({2, Channel::kCommand, to.nic});
      wire::put_check(std::span(bytes).subspan(wire::kHeaderBytes), check);
    }
    network().inject(passing.from, to, bytes, delay);
  }
  // Delivers packets for host 1's NIC to host 2's.
  void misroute(std::uint8_t nic) {
    network().set_drop_rule([this, nic](const Passing& passing) {
      if (passing.from.host != 0 || passing.to.host != 1 || passing.to.nic != nic) return false;
      deliver_to_namesake(passing, microseconds(5));
      return true;
    });
  }
  // Counts the CHECKs and CHECKEDs from now on.
  void count_checks() {
    checks_ = check_bytes_ = 0;
    network().set_observer([this](const Passing& passing) {
      if (!Opened(passing.bytes).is(PacketType::kCheck)) return;
      ++checks_;
      if (passing.fate != Fate::kInjected) check_bytes_ += passing.bytes.size();
    });
  }
  std::size_t checks() const { return checks_; }
  std::size_t check_bytes() const { return check_bytes_; }

 private:
  Duration took_{};
  std::size_t checks_ = 0;
  std::size_t check_bytes_ = 0;
};

using Findings = std::vector<RailFinding>;
constexpr RailFinding kFine = RailFinding::kFine;

TEST_CASE("on a network without faults a check finds each rail fine, after a round trip") {
  const std::size_t count = GENERATE(1u, 2u, 4u);
  CheckScene scene(count);
  const auto couple = scene.settled(count);

  const auto rows = scene.check(0, couple.there);

  REQUIRE(rows.size() == count);
  const auto rails = scene.rails(0, couple.there);
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(rows[i].number == i);
    CHECK(rows[i].finding == kFine);
    CHECK(rows[i].nic == rails[i].nic);
    CHECK(rows[i].local == rails[i].local);
    CHECK(rows[i].remote == rails[i].remote);
    CHECK((rows[i].smallest.there && rows[i].smallest.back));
    CHECK((rows[i].largest.there && rows[i].largest.back));
    CHECK(rows[i].smallest.bytes < 80);
    CHECK(rows[i].largest.bytes == kLong);
  }
  CHECK(scene.took() < microseconds(500));
}

TEST_CASE("a check is exact with addresses of any family") {
  const auto kind = static_cast<std::uint8_t>(GENERATE(4, 6));
  CheckScene scene(2, [&](NodePlan& plan) {
    plan.command.address_kind = plan.data.address_kind = kind;
    plan.config.checksum = kind == 6;
  });
  const auto couple = scene.settled(2);

  CHECK(scene.findings(0, couple.there) == Findings{kFine, kFine});
  scene.cut(1, 0, 1);
  CHECK(scene.findings(0, couple.there) == Findings{kFine, RailFinding::kOneWayBack});
}

TEST_CASE("a rail that carries nothing is found unreachable, within the check's limit") {
  CheckScene scene(3);
  const auto couple = scene.settled(3);
  scene.cut_both_ways(1);
  const Duration limit = GENERATE(milliseconds(1), milliseconds(300), seconds(10));

  const auto rows = scene.check(0, couple.there, limit);

  CHECK(rows[0].finding == kFine);
  CHECK(rows[1].finding == RailFinding::kUnreachable);
  CHECK(rows[2].finding == kFine);
  CHECK_FALSE((rows[1].smallest.there || rows[1].smallest.back));
  CHECK(scene.took() <= limit);
}

TEST_CASE("a rail that works one way is found from either end, with its direction") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  const std::uint8_t nic = GENERATE(0, 1);
  const std::size_t other = nic == 0 ? 1 : 0;

  scene.cut(nic, 0, 1);
  scene.run_for(milliseconds(50));
  const auto here = scene.check(0, couple.there);
  const auto there = scene.check(1, couple.back);

  CHECK(here[nic].finding == RailFinding::kOneWayBack);
  CHECK(there[nic].finding == RailFinding::kOneWayThere);
  CHECK(here[other].finding == kFine);
  CHECK(there[other].finding == kFine);
  CHECK((here[nic].smallest.back && !here[nic].smallest.there));
  CHECK((there[nic].smallest.there && !there[nic].smallest.back));
}

TEST_CASE("a path that loses long packets one way is found from both ends") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  const std::uint8_t from = GENERATE(0, 1);

  scene.narrow(from, 1, 1000);
  const auto here = scene.check(0, couple.there);
  const auto there = scene.check(1, couple.back);

  for (const auto* rows : {&here, &there}) {
    CHECK(rows->at(0).finding == kFine);
    CHECK(rows->at(1).finding == RailFinding::kLargeLost);
    CHECK((rows->at(1).smallest.there && rows->at(1).smallest.back));
    CHECK_FALSE(rows->at(1).largest.back);
  }
  CHECK(here[1].largest.there == (from == 1));
  CHECK(there[1].largest.there == (from == 0));
}

TEST_CASE("a path known to be narrow is still checked with the longest packets of the NICs") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  scene.narrow(0, 0, 1300);
  Act& receive = scene.receive(1, couple.back, 1, 1 << 20);
  scene.send(0, couple.there, 1, 1 << 20);
  REQUIRE(scene.run_until_done(receive));
  REQUIRE(scene.rail(0, couple.there, 0).packet_bytes <= 1300);

  const auto rows = scene.check(0, couple.there);

  CHECK(rows[0].finding == RailFinding::kLargeLost);
  CHECK(rows[0].largest.bytes == kLong);
  CHECK(scene.rail(0, couple.there, 0).packet_bytes > 1200);
}

TEST_CASE("a rail whose packets arrive by another NIC of a host is found from both ends") {
  const std::size_t astray = GENERATE(0u, 1u);
  std::size_t host = 0;
  CheckScene scene({2, 2}, {}, [&](NodePlan& plan) {
    plan.more[0].command.by_another_nic = plan.more[0].data.by_another_nic = host++ == astray;
  });
  const auto couple = scene.settled(2);

  const RailFinding here = RailFinding::kOtherNicHere;
  const RailFinding there = RailFinding::kOtherNicThere;
  CHECK(scene.findings(0, couple.there) == Findings{kFine, astray == 0 ? here : there});
  CHECK(scene.findings(1, couple.back) == Findings{kFine, astray == 1 ? here : there});
  CHECK(scene.rail(0, couple.there, 1).state == RailState::kUp);
}

TEST_CASE("an address at which another host answers is the wrong host") {
  CheckScene scene({2, 2, 2});
  const auto couple = scene.settled(2);

  scene.misroute(1);

  CHECK(scene.findings(0, couple.there) == Findings{kFine, RailFinding::kWrongHost});
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);
}

TEST_CASE("a restarted peer is the wrong host until it is known to be gone") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  scene.restart(1);

  CHECK(scene.findings(0, couple.there) == Findings{RailFinding::kWrongHost});
}

TEST_CASE("a CHECK that reaches another host, or its sender, is not answered there") {
  const std::uint8_t astray = GENERATE(2, 0);
  CheckScene scene({1, 1, 1}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(60); });
  const auto couple = scene.settled(1);
  scene.node(1).stall_until(scene.now() + seconds(20));
  scene.network().set_drop_rule([&](const Passing& passing) {
    const bool to_peer = passing.from.host == 0 && passing.to.host == 1;
    if (!to_peer || !Opened(passing.bytes).is(PacketType::kCheck)) return false;
    const Endpoint elsewhere{astray, passing.to.channel, passing.to.nic};
    scene.network().inject(passing.from, elsewhere, passing.bytes, microseconds(5));
    return true;
  });
  scene.count_checks();

  Act& send = scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(15));
  CHECK(scene.checks() > 1);
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);

  CHECK(scene.run_until_done(send));
  CHECK(send.status() == Status::kOk);
}

// As if another network used the same addresses: its answers say nothing about the peer.
TEST_CASE("a rail that always led elsewhere does not end a peer that is silent") {
  CheckScene scene({2, 2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(60); });
  scene.misroute(1);
  const auto couple = scene.couple(0, 1);
  Act& receive = scene.receive(1, couple.back, 1, 100);
  scene.run_for(seconds(2));

  scene.node(1).stall_until(scene.now() + seconds(20));
  scene.count_checks();
  Act& send = scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(10));
  CHECK(scene.checks() > 1);
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);

  CHECK(scene.run_until_done(send));
  CHECK(send.status() == Status::kOk);
  CHECK(scene.run_until_done(receive));
}

TEST_CASE(
    "another process at one of its addresses does not end a peer, even one that is silent for "
    "long") {
  CheckScene scene({2, 2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  scene.misroute(1);
  scene.count_checks();
  const bool computes = GENERATE(false, true);
  if (computes) scene.node(1).stall_until(scene.now() + seconds(100));

  Act& send = scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(300));

  if (computes) CHECK(scene.checks() > 0);
  CHECK(send.status() == Status::kOk);
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);
}

TEST_CASE("a restarted peer of two rails is detected when both of its addresses have said so") {
  CheckScene scene({2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  scene.restart(1);

  Act& send = scene.send(0, couple.there, 1, 200'000);
  REQUIRE(scene.run_until_done(send, milliseconds(500)));

  CHECK(send.status() == Status::kPeerRestarted);
}

TEST_CASE("another process that replies for a rail on which it was not asked does not end a peer") {
  CheckScene scene({2, 2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  scene.node(1).stall_until(scene.now() + seconds(20));
  std::size_t replies = 0;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host == 0 && passing.to.host == 1 && passing.to.nic == 1) {
      scene.deliver_to_namesake(passing, microseconds(5));
      return true;
    }
    if (passing.from.host != 2 || replies++ > 0) return false;
    std::vector<std::byte> bytes(passing.bytes.begin(), passing.bytes.end());
    wire::PacketHeader header = *Opened(bytes).header;
    header.rail = 0;
    wire::encode(header, bytes.data());
    scene.network().inject(passing.from, passing.to, bytes, microseconds(5));
    return true;
  });

  scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(19));

  CHECK(replies > 1);
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);
}

TEST_CASE("a peer that was not another process after all is found out when it restarts later") {
  CheckScene scene({2, 2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  scene.misroute(1);
  scene.node(1).stall_until(scene.now() + seconds(20));
  Act& before = scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(19));
  scene.network().set_drop_rule({});
  REQUIRE(scene.run_until_done(before));
  scene.run_for(seconds(10));  // until both rails are up again

  scene.restart(1);
  Act& send = scene.send(0, couple.there, 1, 200'000);
  REQUIRE(scene.run_until_done(send, seconds(5)));
  CHECK(send.status() == Status::kPeerRestarted);
}

// Its second NIC has another port now, and its host says that the old one is closed.
TEST_CASE("a restarted peer of two rails is detected although only one port is the same") {
  CheckScene scene({2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  const bool restarts = GENERATE(true, false);  // else it is busy, and refusals are forged
  CAPTURE(restarts);
  if (restarts) scene.restart(1);
  if (!restarts) scene.node(1).stall_until(scene.now() + seconds(60));
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host != 0 || passing.to.host != 1) return false;
    if (restarts && passing.to.nic == 0) return false;
    const auto quoted = restarts ? passing.bytes : std::span<const std::byte>();
    scene.network().refuse(passing.to, passing.from, microseconds(10), quoted);
    return restarts;
  });

  Act& send = scene.send(0, couple.there, 1, 200'000);
  CHECK(scene.run_until_done(send, restarts ? seconds(1) : seconds(50)) == restarts);

  CHECK(scene.engine(0).inspector().peer_status(couple.there) ==
        (restarts ? Status::kPeerRestarted : Status::kOk));
}

TEST_CASE(
    "a closed port and another process at its addresses do not end a peer that was heard since") {
  CheckScene scene({2, 2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.settled(2);
  scene.misroute(1);
  scene.count_checks();
  scene.node(1).stall_until(scene.now() + seconds(30));
  scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(20));
  REQUIRE(scene.checks() > 0);
  scene.network().set_drop_rule([&](const Passing& passing) {  // its own CHECKEDs are lost
    return passing.from.host == 1 && Opened(passing.bytes).is(wire::PacketType::kCheck);
  });
  scene.run_for(seconds(11));

  scene.network().refuse({1, Channel::kCommand, 0}, {0, Channel::kCommand, 0}, microseconds(1));
  scene.run_for(seconds(1));
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);
}

TEST_CASE("a peer suspected of a restart is checked as before when it answers again") {
  CheckScene scene({1, 1}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto couple = scene.couple(0, 1);
  scene.run_for(seconds(1));
  CHECK(scene.findings(1, couple.back) == Findings{kFine});
  scene.count_checks();
  scene.node(1).stall_until(scene.now() + seconds(20));
  scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(25));
  REQUIRE(scene.checks() > 2);

  CHECK(scene.findings(1, couple.back) == Findings{kFine});
  scene.run_for(seconds(3));  // until its questions are forgotten
  CHECK(scene.findings(0, couple.there) == Findings{kFine});
}

TEST_CASE("an unknown-peer reply that arrives after the peer was heard again is ignored") {
  CheckScene scene({1, 1, 1}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(60); });
  const auto couple = scene.couple(0, 1);
  scene.run_for(seconds(1));
  bool elsewhere = true;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (!elsewhere || passing.from.host != 0 || passing.to.host != 1) return false;
    scene.deliver_to_namesake(passing, seconds(4));
    return true;
  });
  Act& send = scene.send(0, couple.there, 1, 100);
  scene.run_for(seconds(4));  // a CHECK is on its way to the other host

  elsewhere = false;
  scene.send(1, couple.back, 2, 10);  // the peer is heard at once
  REQUIRE(scene.run_until_done(send));
  scene.run_for(seconds(10));
  CHECK(scene.engine(0).inspector().peer_status(couple.there) == Status::kOk);
}

TEST_CASE("a check ends in time although the peer dies, falls silent or leaves") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  const int how = GENERATE(0, 1, 2, 3);
  scene.cut_both_ways(1);
  REQUIRE(scene.begin_check(0, couple.there, milliseconds(400)) == Status::kOk);

  if (how == 0) scene.node(1).end(true);
  if (how == 1) scene.node(1).stall_until(scene.now() + seconds(3));
  if (how == 2) scene.begin_close(1);
  if (how == 3) scene.disconnect(0, couple.there);
  const Instant start = scene.now();
  REQUIRE(scene.run_until([&] {
    return scene.engine(0).check_result(couple.there).has_value() ||
           scene.engine(0).inspector().peer_state(couple.there) == PeerState::kUnknown;
  }));

  CHECK(scene.now() - start <= milliseconds(400));
  if (how > 1) return;
  const auto rows = *scene.engine(0).check_result(couple.there);
  CHECK(rows.size() == 2);
  CHECK(rows[0].finding == RailFinding::kUnreachable);
  CHECK(rows[1].finding == RailFinding::kUnreachable);
}

TEST_CASE("a check of a peer that is being called waits for the connection and its rails") {
  CheckScene scene(2);
  const PeerId peer = scene.connect(0, 1);
  REQUIRE(scene.begin_check(0, peer) == Status::kOk);
  REQUIRE(scene.run_until([&] { return scene.engine(0).check_result(peer).has_value(); }));
  const auto rows = *scene.engine(0).check_result(peer);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].finding == kFine);
  CHECK(rows[1].finding == kFine);
}

TEST_CASE("a peer that never answers is unreachable by the rail it was called on") {
  CheckScene scene(2);
  scene.node(1).end(true);
  const PeerId peer = scene.connect(0, 1);
  const auto rows = scene.check(0, peer);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].finding == RailFinding::kUnreachable);
  CHECK(scene.took() <= seconds(1));
}

TEST_CASE("a check that cannot begin says why") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  CHECK(scene.begin_check(0, PeerId{77, 1}) == Status::kUnknownPeer);
  CHECK(scene.begin_check(0, couple.there, Duration(0)) == Status::kInvalidArgument);
  CHECK(scene.begin_check(0, couple.there, std::chrono::hours(2)) == Status::kInvalidArgument);
  CHECK_FALSE(scene.engine(0).check_result(couple.there).has_value());
  scene.begin_close(1);
  scene.run_for(seconds(1));
  CHECK(scene.begin_check(0, couple.there) == Status::kPeerClosed);
  scene.begin_close(0);
  CHECK(scene.begin_check(0, couple.there) == Status::kClosed);
}

TEST_CASE("a check that is begun again forgets what the one before has heard") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  REQUIRE(scene.begin_check(0, couple.there) == Status::kOk);
  scene.run_for(microseconds(8));  // CHECKs have left
  scene.cut_both_ways(1);

  CHECK(scene.findings(0, couple.there) == Findings{kFine, RailFinding::kUnreachable});
}

TEST_CASE("new rails are checked once, by both ends, and a single rail is not") {
  const std::size_t count = GENERATE(1u, 2u, 4u);
  CheckScene scene(count);
  scene.count_checks();
  const auto couple = scene.couple_by_rails(count);
  scene.run_for(milliseconds(100));

  const RailFinding expected = count == 1 ? RailFinding::kNotChecked : kFine;
  for (const auto& rails : {scene.rails(0, couple.there), scene.rails(1, couple.back)}) {
    for (const RailView& rail : rails) CHECK(rail.check == expected);
  }
  const std::size_t seen = scene.checks();
  if (count == 1) CHECK(seen == 0);
  CHECK(seen <= 2 * 5 * count);
  scene.run_for(seconds(20));
  CHECK(scene.checks() == seen);
}

TEST_CASE("the fault of a new rail is known without a check by the program") {
  CheckScene scene(2);
  scene.cut(1, 1, 0);
  const auto couple = scene.couple(0, 1);
  scene.run_for(seconds(2));

  CHECK(scene.rail(0, couple.there, 0).check == kFine);
  CHECK(scene.rail(0, couple.there, 1).check == RailFinding::kOneWayThere);
  CHECK(scene.rail(1, couple.back, 1).check == RailFinding::kOneWayBack);
}

TEST_CASE("a rail's fault is forgotten when the rail carries again") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  scene.check(0, couple.there);
  scene.run_for(milliseconds(30));
  CHECK(scene.rail(0, couple.there, 0).checked_ago >= milliseconds(30));
  CHECK(scene.rail(0, couple.there, 0).checked_ago < milliseconds(40));
  scene.trouble(0, 1, NicTrouble::Kind::kUnplugged, milliseconds(500));
  scene.run_for(milliseconds(10));
  scene.check(0, couple.there, milliseconds(100));
  CHECK(scene.rail(0, couple.there, 1).check == RailFinding::kUnreachable);

  REQUIRE(scene.run_until([&] { return scene.all_up(couple); }, seconds(2)));

  CHECK(scene.rail(0, couple.there, 0).check == kFine);
  CHECK(scene.rail(0, couple.there, 1).check == RailFinding::kNotChecked);
  CHECK(scene.rail(0, couple.there, 1).checked_ago == Duration(0));
  // The check's own result stays as it was.
  const auto result = scene.engine(0).check_result(couple.there);
  REQUIRE(result);
  CHECK(result->at(1).finding == RailFinding::kUnreachable);
  CHECK(scene.check(0, couple.there).at(1).finding == kFine);
  CHECK(scene.rail(0, couple.there, 1).check == kFine);
}

TEST_CASE("loss does not make a check report a rail as broken") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  for (std::uint8_t nic = 0; nic < 2; ++nic) {
    scene.change_wires(nic, [](WireFaults& wire) { wire.loss = 50'000; });
  }
  for (int i = 0; i < 50; ++i) CHECK(scene.findings(0, couple.there) == Findings{kFine, kFine});
}

TEST_CASE("a long CHECK that is lost once is sent again, and counts") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  bool lost = false;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const bool drop = !lost && passing.from.host == 0 && passing.from.nic == 1 &&
                      passing.bytes.size() > kLong / 2 &&
                      Opened(passing.bytes).has(wire::FrameType::kCheck);
    lost = lost || drop;
    return drop;
  });

  CHECK(scene.findings(0, couple.there) == Findings{kFine, kFine});
  CHECK(lost);
}

TEST_CASE("a check beside a stream causes no retransmission") {
  CheckScene scene(2);
  for (std::uint8_t nic = 0; nic < 2; ++nic) {
    scene.change_wires(nic, [](WireFaults& wire) { wire.ns_per_kib = kGigabit; });
  }
  const auto couple = scene.settled(2);
  Stream stream(scene, couple, 64 << 10, 4);
  stream.run_for(milliseconds(20));

  const std::uint64_t before = scene.stats(0).retransmits;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(scene.begin_check(i % 2, i % 2 == 0 ? couple.there : couple.back) == Status::kOk);
    stream.run_for(milliseconds(3));
  }

  CHECK(scene.engine(0).check_result(couple.there).has_value());
  CHECK(scene.engine(1).check_result(couple.back).has_value());
  CHECK(scene.stats(0).retransmits == before);
  CHECK(scene.engine(0).inspector().audit().rails_blamed == 0);
  CHECK(stream.finish());
}

TEST_CASE("a drained rail, and one that is down, are checked like others") {
  CheckScene scene(3);
  const auto couple = scene.settled(3);
  REQUIRE(scene.engine(0).drain_rail(scene.node(0).local_now(), "sim0.1") == Status::kOk);
  scene.trouble(1, 2, NicTrouble::Kind::kUnplugged);
  scene.run_for(milliseconds(50));

  CHECK(scene.findings(0, couple.there) == Findings{kFine, kFine, RailFinding::kUnreachable});
  CHECK(scene.rail(0, couple.there, 1).state == RailState::kDrained);
}

TEST_CASE("a check that is over leaves no timer") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  scene.check(0, couple.there);
  scene.run_for(seconds(30));
  CHECK(scene.engine(0).next_deadline() == kNever);
  CHECK(scene.engine(1).next_deadline() == kNever);
}

// --- attacks

// Sends a CHECK as host 0 would send it to host 1, or a forged one.
class Forger {
 public:
  explicit Forger(CheckScene& scene, Scene::Couple couple) : scene_(scene) {
    scene.network().set_observer([this](const Passing& passing) {
      const Opened opened(passing.bytes);
      if (passing.from.host == 0 && passing.from.nic == 0 && opened.has(wire::FrameType::kCheck)) {
        packet_.assign(passing.bytes.begin(), passing.bytes.end());
      }
    });
    scene.check(0, couple.there);
    REQUIRE_FALSE(packet_.empty());
    scene.count_checks();
  }

  wire::PacketHeader header() const {
    wire::PacketHeader header;
    REQUIRE(wire::decode(packet_, header) == wire::Verdict::kAccepted);
    return header;
  }
  // The last one captured is long; this is as short as it can be.
  wire::Check check() const {
    auto check = *wire::decode_check(Opened(packet_).frames.front().data);
    check.size = wire::CheckSize::kSmallest;
    return check;
  }
  void say(wire::PacketHeader header, const wire::Check& check, std::size_t padding = 0) {
    std::vector<std::byte> bytes(wire::kHeaderBytes +
                                 wire::least_check_bytes(check.called, check.reply_to) + padding);
    wire::put_check(std::span(bytes).subspan(wire::kHeaderBytes), check);
    put(header, bytes);
  }
  void say(wire::PacketHeader header, const wire::Checked& checked, std::size_t to) {
    const std::size_t frame =
        checked.unknown_peer ? wire::kUnknownPeerReplyBytes : wire::kCheckedBytes;
    std::vector<std::byte> bytes(wire::kHeaderBytes + frame);
    wire::put_checked(std::span(bytes).subspan(wire::kHeaderBytes), checked);
    put(header, bytes, to);
  }

 private:
  void put(wire::PacketHeader header, std::vector<std::byte>& bytes, std::size_t to = 1) {
    header.length = static_cast<std::uint16_t>(bytes.size());
    wire::encode(header, bytes.data());
    const Endpoint from{static_cast<std::uint8_t>(1 - to), Channel::kCommand};
    scene_.network().inject(from, {static_cast<std::uint8_t>(to), Channel::kCommand}, bytes,
                            Duration(0));
  }

  CheckScene& scene_;
  std::vector<std::byte> packet_;
};

TEST_CASE("a flood of CHECKs by a sender that knows the proof has few answers") {
  CheckScene scene(4);
  const auto couple = scene.settled(4);
  Forger forger(scene, couple);
  const bool new_rounds = GENERATE(true, false);

  auto check = forger.check();
  ++check.round.count;
  constexpr int kFlood = 10'000;
  for (int i = 0; i < kFlood; ++i) {
    if (new_rounds) ++check.round.count;
    forger.say(forger.header(), check);
    scene.run_for(microseconds(10));
  }

  const std::size_t answers = scene.checks() - kFlood;
  CHECK(answers > 0);
  CHECK(answers <= (new_rounds ? 101u : 16u) * 4);
  Act& receive = scene.receive(1, couple.back, 1, 100);
  scene.send(0, couple.there, 1, 100);
  CHECK(scene.run_until_done(receive));
}

TEST_CASE("a short CHECK never has a long answer, whatever size it claims") {
  CheckScene scene(4);
  const auto couple = scene.settled(4);
  Forger forger(scene, couple);
  auto check = forger.check();
  ++check.round.count;

  check.size = wire::CheckSize::kLargest;
  forger.say(forger.header(), check);
  forger.say(forger.header(), check, kLong / 2);
  scene.run_for(milliseconds(20));
  CHECK(scene.checks() == 2);

  check.size = wire::CheckSize::kSmallest;
  forger.say(forger.header(), check);
  scene.run_for(milliseconds(20));
  CHECK(scene.checks() == 3 + 4);
  CHECK(scene.check_bytes() <= 4 * (wire::kHeaderBytes + wire::kCheckedBytes));
}

TEST_CASE("CHECKs of an earlier round are not answered") {
  CheckScene scene(2);
  const auto couple = scene.settled(2);
  Forger forger(scene, couple);
  auto check = forger.check();

  check.round.count = static_cast<std::uint16_t>(check.round.count - 1);
  forger.say(forger.header(), check);
  check.round.count = static_cast<std::uint16_t>(check.round.count + 1);
  check.round.token ^= 1u << 31;
  forger.say(forger.header(), check);
  scene.run_for(milliseconds(20));

  CHECK(scene.checks() == 2);
}

TEST_CASE("CHECKs for another engine have few, short answers") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  Forger forger(scene, couple);
  auto header = forger.header();
  header.to.proof ^= 1;
  auto check = forger.check();

  SECTION("from an epoch that is not the engine's own") {
    check.epoch ^= 1;
    constexpr std::size_t kFlood = 1000;
    for (std::size_t i = 0; i < kFlood; ++i) {
      forger.say(header, check);
      scene.run_for(microseconds(100));
    }
    const std::size_t answers = scene.checks() - kFlood;
    CHECK(answers > 0);
    CHECK(answers <= 11);
    CHECK(scene.check_bytes() <= answers * (wire::kHeaderBytes + wire::kUnknownPeerReplyBytes));
  }
  SECTION("from its own epoch, with a wrong proof") {
    forger.say(header, check);
    scene.run_for(milliseconds(20));
    CHECK(scene.checks() == 1);
  }
  SECTION("with an impossible address for the answer") {
    check.epoch ^= 1;
    check.reply_to.bytes[0] = std::byte{99};
    forger.say(header, check);
    scene.run_for(milliseconds(20));
    CHECK(scene.checks() == 1);
  }
}

TEST_CASE("an attacker that has not seen the CHECK cannot forge an unknown-peer reply") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  Forger forger(scene, couple);
  const std::uint64_t slot = couple.there.index;
  scene.cut_both_ways(0);
  REQUIRE(scene.begin_check(0, couple.there) == Status::kOk);

  auto header = forger.header();
  header.to = {};
  const auto before = forger.check().round;
  const std::uint64_t epoch = forger.check().epoch;
  for (std::uint64_t guess = 0; guess < 200; ++guess) {
    const auto count = static_cast<std::uint16_t>(before.count + guess % 4);
    forger.say(header, {.round = {count, guess << 20 | slot}, .unknown_peer = true, .epoch = epoch},
               0);
    forger.say(header, {.round = {count, before.token}, .unknown_peer = true, .epoch = epoch}, 0);
    forger.say(header, {.round = {count, guess}, .unknown_peer = true, .epoch = epoch}, 0);
    scene.run_for(microseconds(10));
  }
  REQUIRE(scene.run_until([&] { return scene.engine(0).check_result(couple.there).has_value(); }));

  CHECK(scene.engine(0).check_result(couple.there)->at(0).finding == RailFinding::kUnreachable);
}

TEST_CASE("a CHECK in a packet that is acknowledged, or beside another frame, is refused") {
  CheckScene scene(1);
  const auto couple = scene.couple(0, 1);
  Forger forger(scene, couple);
  auto check = forger.check();
  ++check.round.count;
  auto header = forger.header();
  const std::uint64_t before = scene.stats(1).dropped_packets;

  header.type = PacketType::kSequenced;
  forger.say(header, check);
  header.type = PacketType::kControl;
  forger.say(header, check);
  scene.run_for(milliseconds(20));

  CHECK(scene.stats(1).dropped_packets == before + 2);
  CHECK(scene.checks() == 0);
}

}  // namespace
}  // namespace pullman::sim
