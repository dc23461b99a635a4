// Scenarios: how peers part, restart and fall silent. They are the specification.
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <sstream>

#include "base/log.h"
#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

TEST_CASE("a restarted peer is a new epoch: operations to the old one fail with kPeerRestarted") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& old_receive = scene.receive(0, there, 1, 10);

  scene.restart(1);
  Act& old_send = scene.send(0, there, 2, 200000);
  const PeerId anew = scene.connect(1, 0);  // the new process calls

  REQUIRE(scene.run_until_done(old_send));
  REQUIRE(scene.run_until_done(old_receive));
  CHECK(old_send.status() == Status::kPeerRestarted);
  CHECK(old_receive.status() == Status::kPeerRestarted);
  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kPeerRestarted);
  CHECK(scene.send(0, there, 3, 10).status() != Status::kOk);
  Act& receive = scene.receive_any(0);
  scene.send(1, anew, 4, 100);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 4, 100));
  CHECK_FALSE(receive.request.source() == there);
}

// A host that is full may drop a caller that it has answered, and then call it itself.
TEST_CASE("a peer that gave up its connection and connects anew has closed the old one") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& old_receive = scene.receive(1, back, 1, 10);
  Act& old_send = scene.send(1, back, 2, 200'000);

  scene.engine(0).abandon(there);
  const PeerId anew = scene.connect(0, 1);

  REQUIRE(scene.run_until_done(old_receive));
  REQUIRE(scene.run_until_done(old_send));
  CHECK(old_receive.status() == Status::kPeerClosed);
  CHECK(old_send.status() == Status::kPeerClosed);
  CHECK(scene.engine(1).inspector().peer_status(back) == Status::kPeerClosed);
  Act& receive = scene.receive_any(1);
  scene.send(0, anew, 3, 100);
  REQUIRE(scene.run_until_done(receive));
  CHECK(Scene::holds(receive, 3, 100));
}

// wire.md 5.7: an end with something pending finds out, however long its peer timeout is.
TEST_CASE("a restarted peer that calls no one is detected within seconds") {
  Scene scene(2, [](NodePlan& plan) { plan.config.peer_timeout = std::chrono::hours(1); });
  const auto [there, back] = scene.couple(0, 1);
  scene.run_for(seconds(1));
  Act& old_receive = scene.receive(0, there, 1, 10);

  scene.restart(1);
  scene.send(0, there, 2, GENERATE(1, 200000));
  REQUIRE(scene.run_until_done(old_receive, seconds(6)));

  CHECK(old_receive.status() == Status::kPeerRestarted);
  const PeerId anew = scene.connect(0, 1);
  CHECK(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_state(anew) == PeerState::kConnected; }));
}

// One CHECK after twice the silence, then one a minute: packets that are not read fill the peer's
// socket.
TEST_CASE("a peer that is busy for long is seldom checked for a restart, and is kept") {
  Scene scene(2, [](NodePlan& plan) { plan.config.peer_timeout = std::chrono::hours(1); });
  const auto [there, back] = scene.couple(0, 1);
  std::size_t questions = 0;
  scene.network().set_observer(
      [&](const Passing& passing) { questions += Opened(passing.bytes).is(PacketType::kCheck); });

  scene.node(1).stall_until(scene.now() + std::chrono::minutes(10));
  Act& send = scene.send(0, there, 2, 100);
  scene.run_for(std::chrono::minutes(9));
  CHECK(questions >= 5);
  CHECK(questions <= 15);

  CHECK(scene.run_until_done(send, std::chrono::minutes(2)));
  CHECK(send.status() == Status::kOk);
}

TEST_CASE("a silent peer fails every pending operation after peer_timeout") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(0, there, 1, 10);
  scene.node(1).stall_until(scene.now() + seconds(1000));
  const Instant start = scene.now();

  Act& large = scene.send(0, there, 2, 200000);
  REQUIRE(scene.run_until_done(large, seconds(20)));
  const Duration waited = scene.now() - start;
  scene.run_for(milliseconds(1));

  CHECK(large.status() == Status::kUnreachable);
  CHECK(receive.status() == Status::kUnreachable);
  CHECK(waited >= seconds(9));
  CHECK(waited <= seconds(12));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kGone);
  CHECK(scene.send(0, there, 3, 1).status() == Status::kUnreachable);
  CHECK(scene.engine(0).inspector().audit().packets_in_flight == 0);
}

// The simulator's seed 70460.
TEST_CASE("half a message of a silent peer is not kept for ever") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().set_drop_rule([&, n = 1](const Passing& passing) mutable {
    return passing.from.host == 0 && passing.from.channel == Channel::kData && n-- > 0;
  });

  scene.send(0, there, 1, 5000);
  scene.run_for(microseconds(20));
  scene.node(0).end(true);
  REQUIRE(scene.engine(1).inspector().audit().unexpected_bytes > 0);
  scene.run_for(seconds(15));

  CHECK(scene.engine(1).inspector().audit().unexpected_bytes == 0);
  CHECK(scene.engine(1).inspector().peer_status(back) == Status::kPeerDied);
}

TEST_CASE("a peer that died is told from a network that died if its host sends ICMP errors") {
  const bool network_died = GENERATE(false, true);
  const bool host_says_so = GENERATE(false, true);
  CAPTURE(network_died, host_says_so);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().set_refuses(host_says_so);
  const Instant start = scene.now();

  if (network_died) {
    scene.network().partitions().push_back(
        {.from = 1, .to = 0, .start = scene.now(), .end = scene.now() + seconds(1000)});
  }
  scene.node(1).end(true);
  Act& receive = scene.receive(0, there, 1, 10);
  Act& send = scene.send(0, there, 2, 200000);
  REQUIRE(scene.run_until([&] { return send.done() && receive.done(); }, seconds(20)));

  const bool told = host_says_so && !network_died;
  const Status expected = told ? Status::kPeerDied : Status::kUnreachable;
  CHECK(send.status() == expected);
  CHECK(receive.status() == expected);
  CHECK(scene.engine(0).inspector().peer_status(there) == expected);
  const bool at_once = scene.now() - start < seconds(1);
  CHECK(at_once == told);
  CHECK((at_once || scene.now() - start >= seconds(9)));
  CHECK(scene.now() - start <= seconds(12));
}

TEST_CASE("forged refusals in a host's name do not end a peer, and are soon forgotten") {
  const bool still_said = GENERATE(false, true);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& before = scene.receive(1, back, 1, 200000);
  const Endpoint here{0, Channel::kCommand};
  const Endpoint accused{1, Channel::kCommand};
  for (int i = 0; i < 100; ++i) scene.network().refuse(accused, here, i * microseconds(10));

  scene.send(0, there, 1, 200000);
  REQUIRE(scene.run_until_done(before));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
  CHECK(scene.stats(0).retransmits == 0);
  scene.run_for(seconds(2));
  Act& answer = scene.receive(0, there, 3, 10);
  scene.send(1, back, 3, 10);
  REQUIRE(scene.run_until_done(answer));

  scene.network().partitions().push_back(
      {.from = 1, .to = 0, .start = scene.now(), .end = scene.now() + seconds(1000)});
  scene.run_for(milliseconds(10));
  if (still_said) scene.network().refuse(accused, here);
  Act& after = scene.receive(0, there, 2, 10);
  REQUIRE(scene.run_until_done(after, seconds(20)));

  // A refusal decides what cannot be known otherwise, and nothing else.
  CHECK(after.status() == (still_said ? Status::kPeerDied : Status::kUnreachable));
}

TEST_CASE("one refusal is believed although packets sent before the peer's death are still read") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  const Endpoint here{0, Channel::kCommand};
  scene.network().set_refuses(false);
  Act& last = scene.receive(0, there, 3, 10);
  scene.send(1, back, 3, 10);
  scene.network().refuse(Endpoint{1, Channel::kCommand}, here);
  REQUIRE(scene.run_until_done(last));

  scene.node(1).end(true);
  Act& receive = scene.receive(0, there, 2, 10);
  REQUIRE(scene.run_until_done(receive, seconds(20)));

  CHECK(receive.status() == Status::kPeerDied);
}

TEST_CASE("a peer that never answers is unreachable after peer_timeout") {
  Scene scene;
  scene.node(1).end(true);

  const PeerId there = scene.connect(0, 1);
  Act& send = scene.send(0, there, 1, 100000);

  REQUIRE(scene.run_until_done(send, seconds(15)));
  CHECK(send.status() == Status::kUnreachable);
  CHECK(scene.engine(0).inspector().audit().packets_taken == 0);
}

TEST_CASE(
    "a program that did not poll for longer than peer_timeout does not count that as silence") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(0, there, 1, 10);

  scene.node(0).stall_until(scene.now() + seconds(25));
  scene.run_for(seconds(30));
  scene.send(1, back, 1, 10);

  REQUIRE(scene.run_until_done(receive));
  CHECK(receive.status() == Status::kOk);
}

TEST_CASE("a program that polls rarely still learns that its peer is silent") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(0, there, 1, 10);
  scene.node(0).set_poll_interval(seconds(5));
  scene.node(1).end(true);

  REQUIRE(scene.run_until_done(receive, seconds(60)));
  CHECK(receive.status() == Status::kPeerDied);
}

TEST_CASE("an idle connection outlives peer_timeout") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);

  scene.run_for(seconds(60));
  Act& receive = scene.receive(1, back, 1, 10);
  scene.send(0, there, 1, 10);

  REQUIRE(scene.run_until_done(receive));
  CHECK(receive.status() == Status::kOk);
}

TEST_CASE("disconnect delivers what was accepted, and sends the peer a BYE") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 100'000;
  Act& receive = scene.receive(1, back, 1, 50000);
  Act& never = scene.receive(1, back, 2, 10);

  Act& send = scene.send(0, there, 1, 50000);
  scene.disconnect(0, there);

  REQUIRE(scene.run_until([&] { return receive.done() && never.done() && send.done(); }));
  CHECK(receive.status() == Status::kOk);
  CHECK(Scene::holds(receive, 1, 50000));
  CHECK(send.status() == Status::kOk);
  CHECK(never.status() == Status::kPeerClosed);
  CHECK(scene.engine(1).inspector().peer_status(back) == Status::kPeerClosed);
}

TEST_CASE("close delivers what was accepted, and refuses new sends") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.network().wire(0, 1).loss = 100'000;
  std::vector<Act*> receives;
  for (Tag i = 0; i < 50; ++i) {
    scene.send(0, there, i, i * 500);
    receives.push_back(&scene.receive(1, back, i, 50 * 500));
  }

  scene.begin_close(0);
  Act& refused = scene.send(0, there, 99, 10);

  CHECK(refused.status() == Status::kClosed);
  REQUIRE(scene.run_until([&] { return scene.engine(0).drained(); }, seconds(10)));
  for (const Act* receive : receives) CHECK(receive->status() == Status::kOk);
}

TEST_CASE("close ends in time when the peer is silent") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.node(1).stall_until(scene.now() + seconds(1000));
  Act& send = scene.send(0, there, 1, 100000);

  scene.begin_close(0);
  scene.run_until([&] { return scene.engine(0).drained(); }, seconds(30));
  scene.engine(0).abort();

  CHECK(send.done());
  CHECK(send.status() != Status::kOk);
}

TEST_CASE(
    "a program whose calls have no answer is warned now and then, long before the peer timeout") {
  std::ostringstream said;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(said);
  log().sinks().push_back(sink);
  {
    Scene scene(2, [](NodePlan& plan) { plan.config.peer_timeout = seconds(200); });
    scene.node(1).stall_until(scene.now() + seconds(1000));
    scene.connect(0, 1);
    scene.run_for(seconds(9));
    CHECK(said.str().empty());
    scene.run_for(seconds(120));
  }
  log().sinks().pop_back();
  const std::string text = said.str();
  CHECK_THAT(text, Catch::Contains("10.0.0.2:7100 has been silent for"));
  CHECK(std::count(text.begin(), text.end(), '\n') <= 3);
}

TEST_CASE("an abortive close tells the peer, although it has not taken a message") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  scene.send(0, there, 1, 10'000'000);  // not received
  scene.begin_close(0);
  scene.run_until([&] { return scene.engine(0).drained(); }, milliseconds(200));
  REQUIRE_FALSE(scene.engine(0).drained());
  Act& receive = scene.receive(1, back, 2, 100);

  scene.engine(0).close_abortively(scene.node(0).local_now());

  REQUIRE(scene.run_until_done(receive));
  CHECK(receive.status() == Status::kPeerClosed);
  CHECK(scene.engine(1).inspector().peer_state(back) == PeerState::kGone);
}

TEST_CASE("an abortive close reaches the peer although a packet is lost") {
  const bool grants_are_due = GENERATE(false, true);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive(1, back, 2, 100);
  scene.send(0, there, 1, 10'000'000);  // not received
  scene.run_for(milliseconds(50));
  if (grants_are_due) {
    for (Tag tag = 10; tag < 20; ++tag) scene.send(1, back, tag, 200'000);
    scene.run_for(milliseconds(50));
    for (Tag tag = 10; tag < 20; ++tag) scene.receive(0, there, tag, 200'000);
  }
  scene.network().set_drop_rule(
      [n = 0](const Passing& passing) mutable { return passing.from.host == 0 && n++ == 0; });

  scene.engine(0).close_abortively(scene.node(0).local_now());

  REQUIRE(scene.run_until_done(receive));
  CHECK(receive.status() == Status::kPeerClosed);
}

// Each message is in a packet of its own, and unread when the BYE comes.
TEST_CASE(
    "messages that arrived before an abortive close are received by a program that polls late") {
  const std::size_t rails = GENERATE(1u, 2u);
  RailScene scene({rails, rails});
  const auto [there, back] = scene.couple_by_rails(rails);
  std::vector<Act*> receives;
  for (Tag tag = 0; tag < 10; ++tag) receives.push_back(&scene.receive(1, back, tag, 2000));
  scene.run_for(milliseconds(1));
  scene.node(1).stall_until(scene.now() + seconds(3));
  for (Tag tag = 0; tag < 10; ++tag) scene.send(0, there, tag, 1200);
  scene.run_for(milliseconds(1));

  scene.begin_close(0);
  scene.run_for(milliseconds(100));
  scene.engine(0).close_abortively(scene.node(0).local_now());

  for (Tag tag = 0; tag < 10; ++tag) {
    REQUIRE(scene.run_until_done(*receives[tag]));
    CHECK(Scene::holds(*receives[tag], tag, 1200));
  }
}

TEST_CASE("abandoning a peer that never answered ends what is pending with it") {
  Scene scene;
  scene.node(1).stall_until(scene.now() + seconds(1000));
  const PeerId there = scene.connect(0, 1);
  Act& send = scene.send(0, there, 1, 100'000);
  Act& receive = scene.receive(0, there, 2, 100);
  scene.run_for(milliseconds(5));

  scene.engine(0).abandon(there);

  CHECK(send.status() == Status::kClosed);
  CHECK(receive.status() == Status::kClosed);
  scene.run_for(milliseconds(5));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kGone);
  scene.node(1).stall_until(scene.now());
}

TEST_CASE("a peer beyond max_peers is refused") {
  Scene scene(3, [](NodePlan& plan) { plan.config.max_peers = 1; });
  scene.couple(0, 1);

  const PeerId there = scene.connect(2, 1);
  Act& send = scene.send(2, there, 1, 100000);

  REQUIRE(scene.run_until_done(send));
  CHECK((send.status() == Status::kRefused || send.status() == Status::kUnreachable));
  CHECK(scene.stats(1).peers_connected == 1);
}

// Nothing is pending with them, so their death is not noticed otherwise.
TEST_CASE("when there is no place for a caller, dead peers make room, and no others") {
  const bool dies = GENERATE(false, true);
  Scene scene(4, [](NodePlan& plan) { plan.config.max_peers = 2; });
  std::vector<PeerId> there;
  for (const std::size_t client : {1, 2}) {
    there.push_back(scene.couple(client, 0).there);
    Act& receive = scene.receive_any(0);
    scene.send(client, there.back(), client, 100);
    REQUIRE(scene.run_until_done(receive));
  }
  scene.run_for(seconds(1));
  if (dies) scene.node(1).end(true);

  Act& receive = scene.receive_any(0);
  for (const int call : {1, 2}) {
    const PeerId again = scene.connect(3, 0);
    CAPTURE(call);
    Act& send = scene.send(3, again, 9, 200'000);
    scene.run_until([&] { return send.done() || receive.done(); }, seconds(40));
    scene.disconnect(3, again);
    scene.run_for(seconds(1));
  }
  CHECK(receive.done() == dies);
  CHECK(scene.engine(2).inspector().peer_status(there[1]) == Status::kOk);
  scene.send(2, there[1], 7, 100);
  CHECK(scene.run_until_done(dies ? scene.receive_any(0) : receive));
}

// The callers never get a WELCOME, so they never prove themselves.
TEST_CASE("unproved callers do not end an idle peer, though they fill the table") {
  Scene scene(4, [](NodePlan& plan) { plan.config.max_peers = 2; });
  const PeerId back = scene.couple(1, 0).back;
  scene.run_for(seconds(1));
  scene.node(1).stall_until(scene.now() + seconds(60));
  scene.network().set_drop_rule(
      [](const Passing& passing) { return passing.from.host == 0 && passing.to.host > 1; });

  for (int again = 0; again < 3; ++again) {
    for (const std::size_t stranger : {2, 3}) scene.connect(stranger, 0);
    scene.run_for(seconds(15));
  }

  CHECK(scene.engine(0).inspector().peer_status(back) == Status::kOk);
}

// Peers come and go in several ways, far more of them than there are slots.
TEST_CASE("the slots of peers that have ended are reused") {
  const std::size_t mix = GENERATE(0u, 1u, 2u, 3u);
  Scene scene(5, [](NodePlan& plan) { plan.config.max_peers = 4; });

  for (std::size_t round = 0; round < 90; ++round) {
    const std::size_t client = 1 + (round + mix) % 4;
    CAPTURE(round, client);
    const PeerId there = scene.connect(client, 0);
    Act& receive = scene.receive(0, kAnyPeer, round, 100);
    scene.send(client, there, round, 100);
    REQUIRE(scene.run_until_done(receive, seconds(2)));
    REQUIRE(Scene::holds(receive, round, 100));
    if (round % 7 == 3) scene.send(client, there, 1000, 100);  // never received
    scene.run_for(milliseconds(1));
    // The last mix: now and then a peer that sends BYE, among many that are disconnected.
    const std::size_t way = (round * (mix + 1) + round / 5) % 4;
    switch (mix == 3 ? (round % 12 == 0 ? 2 : 1) : way) {
      case 0:
        scene.disconnect(client, there);
        break;
      case 1:
        scene.disconnect(0, receive.request.source());
        break;
      case 2:
        scene.begin_close(client);
        REQUIRE(scene.run_until([&] { return scene.engine(client).drained(); }, seconds(2)));
        scene.restart(client);
        break;
      case 3:
        scene.restart(client);
        break;
    }
    scene.run_for(milliseconds(1));
  }

  // There is still a place for each of them.
  for (const std::size_t client : {1u, 2u, 3u, 4u}) {
    Act& receive = scene.receive(0, kAnyPeer, 500 + client, 100);
    scene.send(client, scene.connect(client, 0), 500 + client, 100);
    CHECK(scene.run_until_done(receive, seconds(2)));
  }
  CHECK(scene.stats(0).peers_connected == 4);
}

TEST_CASE("disconnect ends in time when both ends hold long messages that are not received") {
  const bool both = GENERATE(true, false);
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& to_one = scene.send(0, there, 1, 1 << 20);
  Act& to_zero = scene.send(1, back, 2, 1 << 20);
  scene.run_for(milliseconds(5));

  const Instant start = scene.now();
  scene.disconnect(0, there);
  if (both) scene.disconnect(1, back);
  REQUIRE(scene.run_until([&] { return to_one.done() && to_zero.done(); }, seconds(60)));

  // Eight looks per timeout; the second end may have heard from the first just before.
  CHECK(scene.now() - start <= seconds(2 * 10 + 3));
  CHECK(to_one.status() == Status::kTimedOut);
  CHECK((to_zero.status() == Status::kTimedOut || to_zero.status() == Status::kUnreachable));
  scene.run_for(milliseconds(1));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kUnknown);
  for (const std::size_t host : {0u, 1u}) {
    CHECK(scene.engine(host).inspector().audit().packets_taken == 0);
    CHECK(scene.engine(host).inspector().audit().unexpected_bytes == 0);
  }
}

TEST_CASE("accept skips callers that are forgotten, and returns max_peers at most") {
  Scene scene(3, [](NodePlan& plan) { plan.config.max_peers = 3; });
  const int rounds = GENERATE(30, 31, 32, 33);
  for (int round = 0; round < rounds; ++round) {
    const PeerId there = scene.connect(1, 0);
    Act& receive = scene.receive_any(0);
    scene.send(1, there, 1, 10);
    REQUIRE(scene.run_until_done(receive, seconds(2)));
    scene.disconnect(1, there);
    scene.run_for(milliseconds(1));
    scene.disconnect(0, receive.request.source());
  }
  const PeerId last = scene.connect(2, 0);
  scene.run_for(milliseconds(1));

  std::vector<PeerId> accepted;
  while (const auto caller = scene.accept(0)) accepted.push_back(*caller);

  CHECK(scene.engine(2).inspector().peer_state(last) == PeerState::kConnected);
  REQUIRE_FALSE(accepted.empty());
  CHECK(accepted.size() <= 3);
  for (const PeerId id : accepted)
    CHECK(scene.engine(0).inspector().peer_state(id) != PeerState::kUnknown);
  CHECK(scene.engine(0).inspector().peer_state(accepted.back()) == PeerState::kConnected);
}

}  // namespace
}  // namespace pullman::sim
