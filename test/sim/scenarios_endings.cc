// Scenarios: how peers part, and what each end knows then.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "sim/operations.h"
#include "sim/rail_scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a message that was received is delivered, though the BYE overtakes its last ACKs") {
  const std::size_t size = GENERATE(37'000, 100'000, 1'000'000);
  const std::uint8_t late = GENERATE(0, 1);
  RailScene scene({2, 2});
  const auto couple = scene.couple_by_rails(2);
  const PeerId there = couple.there;
  const PeerId back = couple.back;
  scene.network().wire(Plug{1, late}, Plug{0, late}).delay = milliseconds(3);
  Act& receive = scene.receive(1, back, 1, size);
  Act& send = scene.send(0, there, 1, size);

  REQUIRE(scene.run_until_done(receive));
  scene.begin_close(1);
  REQUIRE(scene.run_until_done(send));

  CHECK(Scene::holds(receive, 1, size));
  CHECK(send.status() == Status::kOk);
  REQUIRE(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_status(there) != Status::kOk; }));
  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kPeerClosed);
}

TEST_CASE("an engine that closes delivers what it has just sent to itself") {
  Scene scene(1);
  const PeerId here = scene.connect(0, 0);
  Act& send = scene.send(0, here, 1, 100);
  scene.begin_close(0);
  REQUIRE(scene.run_until([&] { return scene.engine(0).drained(); }, seconds(2)));
  CHECK(send.status() == Status::kOk);
}

TEST_CASE("a BYE tells which messages behind a gap have arrived") {
  RailScene scene({1, 1});
  const auto [there, back] = scene.couple(0, 1);
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host == 1) return !Opened(passing.bytes).has(wire::FrameType::kBye);
    const Opened opened(passing.bytes);
    if (!opened.has(wire::FrameType::kChunk)) return false;
    const wire::Frame& chunk = opened.frames.front();
    return chunk.tag == 2 && chunk.offset < 3000 && chunk.offset + chunk.data.size() > 3000;
  });
  Act& first = scene.send(0, there, 1, 6000);
  Act& lost = scene.send(0, there, 2, 6000);
  Act& third = scene.send(0, there, 3, 6000);
  scene.run_for(milliseconds(1));

  scene.begin_close(1);
  REQUIRE(scene.run_until([&] { return first.done() && lost.done() && third.done(); }));

  CHECK(first.status() == Status::kOk);
  CHECK(lost.status() == Status::kPeerClosed);
  CHECK(third.status() == Status::kOk);
}

TEST_CASE("a BYE tells what has arrived behind unreceived messages, however old these are") {
  const std::size_t forgotten = GENERATE(1u, 63u);
  const std::uint8_t late = GENERATE(0, 1);
  RailScene scene({2, 2});
  const auto [there, back] = scene.couple_by_rails(2);
  std::vector<Act*> unreceived;
  for (Tag tag = 0; tag < forgotten; ++tag) {
    unreceived.push_back(&scene.send(0, there, 100 + tag, 200'000));
  }
  for (int i = 0; i < 5000; ++i) {
    Act& receive = scene.receive(1, back, 1, 8);
    scene.send(0, there, 1, 8);
    if (i % 100 == 99) REQUIRE(scene.run_until_done(receive));
  }
  scene.network().wire(Plug{1, late}, Plug{0, late}).delay = milliseconds(3);
  Act& receive = scene.receive(1, back, 2, 100'000);
  Act& last = scene.send(0, there, 2, 100'000);
  REQUIRE(scene.run_until_done(receive));

  scene.begin_close(1);
  REQUIRE(scene.run_until_done(last));

  CHECK(last.status() == Status::kOk);
  REQUIRE(scene.run_until([&] { return unreceived.back()->done(); }));
  for (const Act* act : unreceived) CHECK(act->status() == Status::kPeerClosed);
}

TEST_CASE("a BYE that first arrives after its peer is gone is acknowledged, not counted as late") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  std::optional<std::vector<std::byte>> bye;
  std::optional<wire::PacketHeader> answer;
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Opened opened(passing.bytes);
    if (passing.from.host == 0) answer = opened.header;
    if (passing.from.host == 0 || !opened.has(wire::FrameType::kBye)) return false;
    bye.emplace(passing.bytes.begin(), passing.bytes.end());
    return true;
  });
  scene.disconnect(1, back);
  scene.begin_close(0);
  REQUIRE(scene.run_until([&, peer = there] {
    return bye && scene.engine(0).inspector().peer_state(peer) == PeerState::kGone;
  }));
  answer.reset();

  scene.network().inject({1, Channel::kCommand, 0}, {0, Channel::kCommand, 0}, *bye,
                         microseconds(10));
  REQUIRE(scene.run_until([&] { return answer.has_value(); }));

  CHECK(answer->has(wire::kFlagAck));
  CHECK(answer->cumulative == Opened(*bye).header->number + 1);
  CHECK(answer->late == 0);
}

TEST_CASE("a NIC is in use while a peer is connected by it, and not when all have ended") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  CHECK(scene.engine(0).is_in_use(0));

  scene.disconnect(1, back);
  REQUIRE(scene.run_until([&, peer = there] {
    return scene.engine(0).inspector().peer_state(peer) == PeerState::kGone;
  }));
  CHECK_FALSE(scene.engine(0).is_in_use(0));
}

TEST_CASE("a BYE does not complete a synchronous send, which ends with kPeerClosed") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Doings doings(scene);
  SendOptions options;
  options.synchronous = true;
  Act& send = doings.send(0, there, 1, bytes_of(100, 1), options);
  scene.run_for(milliseconds(1));

  scene.begin_close(1);
  REQUIRE(scene.run_until_done(send));

  CHECK(send.status() == Status::kPeerClosed);
}

// Its BYE has listed what arrived, so a sender would not hear of later messages.
TEST_CASE("a peer that has sent BYE takes no later message") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  Act& receive = scene.receive_any(1);
  scene.network().set_drop_rule([](const Passing& passing) { return passing.from.host == 1; });
  scene.disconnect(1, back);
  scene.run_for(milliseconds(1));
  SendOptions until_delivered;
  until_delivered.until_delivered = true;
  Doings doings(scene);
  Act& send = doings.send(0, there, 1, bytes_of(100, 1), until_delivered);
  scene.run_for(milliseconds(10));

  scene.network().set_drop_rule({});
  REQUIRE(scene.run_until_done(send));

  CHECK(send.status() == Status::kPeerClosed);
  CHECK_FALSE(receive.done());
}

TEST_CASE("a BYE that names messages which were never sent is ignored") {
  Scene scene;
  const auto [there, back] = scene.couple(0, 1);
  std::optional<std::vector<std::byte>> forged;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host != 1 || !Opened(passing.bytes).has(wire::FrameType::kBye)) return false;
    forged.emplace(passing.bytes.begin(), passing.bytes.end());
    return true;
  });
  scene.begin_close(1);
  REQUIRE(scene.run_until([&] { return forged.has_value(); }));
  const std::size_t id = wire::kHeaderBytes + 4;
  (*forged)[id + 3] = static_cast<std::byte>(std::to_integer<unsigned>((*forged)[id + 3]) + 1);

  scene.network().inject({1, Channel::kCommand, 0}, {0, Channel::kCommand, 0}, *forged,
                         microseconds(10));
  scene.run_for(milliseconds(1));

  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
}

// --- death of a peer

TEST_CASE("a peer whose host says that its ports are closed is known to be dead within a second") {
  const std::size_t nics = GENERATE(1, 2, 4);
  const bool sends = GENERATE(false, true);
  RailScene scene({nics, nics}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto [there, back] = scene.couple_by_rails(nics);
  Act& waits = scene.receive(0, there, 1, 100);
  for (Tag tag = 0; sends && tag < 3; ++tag) {
    Act& receive = scene.receive(1, back, tag, 300'000);
    scene.send(0, there, tag, 300'000);
    REQUIRE(scene.run_until_done(receive));
  }
  if (!sends) scene.run_for(seconds(2));

  scene.node(1).end(true);
  if (sends) scene.send(0, there, 9, 300'000);
  REQUIRE(scene.run_until_done(waits, seconds(1)));

  CHECK(waits.status() == Status::kPeerDied);
  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kPeerDied);
}

TEST_CASE("one ICMP refusal on each rail is enough, as hosts limit their rate") {
  RailScene scene({2, 2}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto [there, back] = scene.couple_by_rails(2);
  std::array<bool, 2> told{};
  scene.network().set_refuses(false);
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.fate != Fate::kArrives || passing.to.host != 1 || told[passing.to.nic]) return;
    told[passing.to.nic] = true;
    scene.network().refuse(passing.to, passing.from, microseconds(20), passing.bytes);
  });
  scene.node(1).end(true);
  Act& receive = scene.receive(0, there, 1, 100);

  REQUIRE(scene.run_until_done(receive, seconds(1)));

  CHECK(receive.status() == Status::kPeerDied);
}

TEST_CASE("a busy peer is not taken for dead because of forged refusals") {
  const std::size_t nics = GENERATE(1, 2);
  RailScene scene({nics, nics}, [](NodePlan& plan) { plan.config.peer_timeout = seconds(600); });
  const auto [there, back] = scene.couple_by_rails(nics);
  Act& send = scene.send(0, there, 1, 200'000);
  scene.node(1).stall_until(scene.now() + seconds(30));
  std::size_t packets = 0;
  // Refuses each packet, as an attacker that has not seen it: with a guessed proof.
  scene.network().set_observer([&](const Passing& passing) {
    if (passing.from.host != 0) return;
    ++packets;
    std::array<std::byte, 12> guess{};
    std::copy_n(passing.bytes.begin(), 8, guess.begin());
    scene.network().refuse(passing.to, passing.from, microseconds(20), guess);
  });
  const std::size_t before = packets;

  scene.run_for(seconds(25));

  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kOk);
  CHECK(packets - before < 25 * 60 * nics);
  scene.network().set_observer({});
  Act& receive = scene.receive(1, back, 1, 200'000);
  REQUIRE(scene.run_until_done(receive));
  REQUIRE(scene.run_until_done(send));
  CHECK(send.status() == Status::kOk);
}

TEST_CASE("a filter that refuses packets for a moment ends no peer, though it quotes them") {
  RailScene scene({2, 2});
  const auto [there, back] = scene.couple_by_rails(2);
  bool filters = true;
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (!filters || passing.from.host != 0) return false;
    scene.network().refuse(passing.to, passing.from, microseconds(20), passing.bytes);
    return true;
  });
  Act& send = scene.send(0, there, 1, 300'000);
  Act& receive = scene.receive(1, back, 1, 300'000);
  scene.run_for(milliseconds(300));

  filters = false;
  REQUIRE(scene.run_until_done(receive));

  CHECK(scene.run_until_done(send));
  CHECK(send.status() == Status::kOk);
}

TEST_CASE("a closed port at one address does not end a peer that is heard at the other") {
  RailScene scene({2, 2});
  const auto [there, back] = scene.couple_by_rails(2);
  scene.network().set_drop_rule([&](const Passing& passing) {
    if (passing.from.host != 0 || passing.to.nic != 1) return false;
    scene.network().refuse(passing.to, passing.from, microseconds(20), passing.bytes);
    return true;
  });
  const std::uint64_t before = scene.stats(0).probes_sent;

  scene.run_for(seconds(20));

  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kOk);
  CHECK(scene.stats(0).probes_sent - before < 20 * 60);
}

}  // namespace
}  // namespace pullman::sim
