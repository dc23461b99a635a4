// Scenarios: an attacker that may send HELLOs to any host, and sees only the packets sent to it. It
// must achieve nothing but answers.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "sim/rail_scene.h"
#include "sim/sim_port.h"
#include "sim/stranger.h"
#include "wire/nics.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;

constexpr Duration kPtoInitial = milliseconds(100);

// Returns the frame of an empty message, the first of its sender.
std::vector<std::byte> message_frame(const wire::Hello& hello, Tag tag) {
  std::vector<std::byte> frame(wire::kMessageBytes);
  wire::put_message(frame.data(), hello.first_message, tag, 0);
  return frame;
}

// Checks that messages arrive both ways.
void check_they_talk(Scene& scene, Scene::Couple couple, Tag tag) {
  Act& at_one = scene.receive(1, couple.back, tag, 5000);
  Act& at_zero = scene.receive(0, couple.there, tag, 5000);
  scene.send(0, couple.there, tag, 3000);
  scene.send(1, couple.back, tag, 4000);
  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }, seconds(2)));
  CHECK(Scene::holds(at_one, tag, 3000));
  CHECK(Scene::holds(at_zero, tag, 4000));
}

TEST_CASE("a second, shorter HELLO does not replace the first") {
  Scene scene(2);
  Stranger stranger(scene, 1);
  Act& receive = scene.receive_any(0);
  Act& none = scene.receive_any(0);
  wire::Hello hello = stranger.hello(0);
  const auto early = message_frame(hello, 5);

  stranger.say(0, hello, {.early_data = early});
  scene.run_for(milliseconds(1));
  REQUIRE(stranger.heard(PacketType::kWelcome) == 1);
  hello.nics[0].data = {.kind = 255, .length = 1, .bytes = {std::byte{1}}};
  stranger.say(0, hello, {.repetition = 1, .body_bytes = 0});
  scene.run_for(milliseconds(1));
  CHECK(stranger.heard(PacketType::kWelcome) == 1);
  for (std::uint32_t repetition : {2u, 3u}) {
    stranger.say(0, hello, {.repetition = repetition});
    scene.run_for(milliseconds(1));
  }
  CHECK(stranger.heard(PacketType::kWelcome) == 3);

  // The first HELLO still counts: its proof is good, and its early data is delivered.
  CHECK_FALSE(receive.done());
  stranger.prove(0, stranger.heard().back().hello->reply_to, hello);
  REQUIRE(scene.run_until_done(receive, seconds(1)));
  CHECK(receive.request.tag() == 5);
  stranger.say(0, hello, {.repetition = 4, .early_data = early});
  scene.run_for(seconds(1));
  CHECK_FALSE(none.done());
}

TEST_CASE("an unproved caller is sent one WELCOME per HELLO, none longer than that") {
  const std::uint8_t kind = GENERATE(std::uint8_t{4}, std::uint8_t{6}, std::uint8_t{255});
  Scene scene(2, [kind](NodePlan& plan) {
    plan.command.address_kind = plan.data.address_kind = kind;
    plan.command.resolve_delay = microseconds(3);
  });
  Stranger stranger(scene, 1);
  const std::size_t least = wire::encoded_bytes(stranger.hello(0));

  for (const std::size_t body : {std::size_t{0}, least + 1, std::size_t{200}, std::size_t{319},
                                 std::size_t{328}, std::size_t{360}, std::size_t{1400}}) {
    const wire::Hello hello = stranger.hello(0);
    const std::size_t heard = stranger.heard().size();
    stranger.say(0, hello, {.body_bytes = body});
    stranger.prove(0, {0, 12345}, hello);  // with a wrong proof
    scene.run_for(milliseconds(250));
    const std::size_t length = wire::kHeaderBytes + wire::kFrameHeadBytes + std::max(body, least);
    const bool answered = body >= 328;
    CAPTURE(body);
    CHECK(stranger.heard().size() == heard + (answered ? 1 : 0));
    if (answered) {
      CHECK(stranger.heard().back().header.type == PacketType::kWelcome);
      CHECK(stranger.heard().back().header.length <= length);
    }
  }
  CHECK(scene.stats(0).peers_connected == 0);
  scene.run_for(seconds(15));
  CHECK(stranger.heard().size() == stranger.heard(PacketType::kWelcome));
}

TEST_CASE("300 unproved callers take bounded memory and delay no other peer") {
  Scene scene(4, [](NodePlan& plan) { plan.config.max_peers = 128; });
  const auto couple = scene.couple(1, 0);
  Stranger stranger(scene, 3);
  const std::size_t taken_before = scene.engine(0).inspector().audit().packets_taken;

  std::size_t max_taken = 0;
  for (int i = 0; i < 300; ++i) {
    const wire::Hello hello = stranger.hello(0);
    const auto early = message_frame(hello, 5);
    stranger.say(0, hello, {.early_data = early});
    scene.run_for(microseconds(10));
    max_taken = std::max(max_taken, scene.engine(0).inspector().audit().packets_taken);
  }
  CHECK(max_taken <= taken_before + 64);  // a quarter of the peers, but at least 64
  CHECK(stranger.heard(PacketType::kWelcome) == 64);

  check_they_talk(scene, {couple.back, couple.there}, 9);
  const Instant start = scene.now();
  const PeerId there = scene.connect(2, 0);
  Act& receive = scene.receive(0, kAnyPeer, 8, 100);
  scene.send(2, there, 8, 100);
  REQUIRE(scene.run_until_done(receive, seconds(5)));
  CHECK(scene.now() - start <= 5 * kPtoInitial);
  CHECK(scene.engine(0).inspector().peer_status(couple.back) == Status::kOk);
  CHECK(scene.stats(0).peers_connected == 2);
  scene.run_for(seconds(15));
  CHECK(scene.engine(0).inspector().audit().packets_taken == 0);
}

TEST_CASE("connect has priority over unproved callers when the table is full") {
  Scene scene(5, [](NodePlan& plan) { plan.config.max_peers = 8; });
  Stranger stranger(scene, 4);
  for (int i = 0; i < 20; ++i) stranger.say(0, stranger.hello(0));
  scene.run_for(milliseconds(1));
  REQUIRE(stranger.heard(PacketType::kWelcome) == 8);

  std::vector<Act*> receives;
  for (std::size_t host : {1u, 2u, 3u}) {
    const PeerId there = scene.connect(0, host);
    receives.push_back(&scene.receive_any(host));
    scene.send(0, there, host, 100);
  }

  REQUIRE(scene.run_until(
      [&] {
        return std::all_of(receives.begin(), receives.end(), [](Act* act) { return act->done(); });
      },
      seconds(1)));
  CHECK(scene.stats(0).peers_connected == 3);
}

// Returns a HELLO of a caller at host 1 that names an address of host 0 as its own, too, as hosts
// with a Docker bridge do.
wire::Hello with_an_address_of_zero(Stranger& stranger) {
  wire::Hello hello = stranger.hello(0);
  hello.nics[hello.nic_count++] = stranger.hello_as(0, 0).nics[0];
  return hello;
}

TEST_CASE(
    "an address that this host has, too, counts as a peer's only if the peer is on this host") {
  const bool same_host = GENERATE(false, true);
  Scene scene(2, [](NodePlan& plan) { plan.config.believe_addresses = true; });
  Stranger stranger(scene, 1);
  wire::Hello hello = with_an_address_of_zero(stranger);
  if (same_host) hello.host = scene.node(0).identity();
  stranger.say(0, hello);
  scene.run_for(milliseconds(1));
  REQUIRE(stranger.heard(PacketType::kWelcome) == 1);
  stranger.prove(0, stranger.heard().back().hello->reply_to, hello);
  scene.run_for(milliseconds(1));
  const auto caller = scene.accept(0);
  REQUIRE(caller.has_value());

  const PeerId here = scene.connect(0, 0);

  CHECK((here == *caller) == same_host);
  CHECK(scene.engine(0).inspector().is_self(here) == !same_host);
}

TEST_CASE("a caller that names an address of ours is not taken for the peer called there") {
  Scene scene(2);
  Stranger stranger(scene, 1);
  const wire::Hello hello = with_an_address_of_zero(stranger);
  stranger.say(0, hello);
  scene.run_for(milliseconds(1));
  REQUIRE(stranger.heard(PacketType::kWelcome) == 1);

  const PeerId here = scene.connect(0, 0);
  stranger.prove(0, stranger.heard().back().hello->reply_to, hello);
  scene.run_for(milliseconds(1));

  const auto caller = scene.accept(0);
  REQUIRE(caller.has_value());
  CHECK_FALSE(here == *caller);
  CHECK(scene.engine(0).inspector().is_self(here));
}

TEST_CASE("a caller of another host is not answered at an address of ours") {
  const bool same_host = GENERATE(false, true);
  Scene scene(2);
  Stranger stranger(scene, 1);
  std::size_t to_itself = 0;
  scene.network().set_observer(
      [&](const Passing& passing) { to_itself += passing.from.host == 0 && passing.to.host == 0; });
  wire::Hello hello = with_an_address_of_zero(stranger);
  hello.nic = 1;
  if (same_host) hello.host = scene.node(0).identity();

  stranger.say(0, hello);
  scene.run_for(milliseconds(1));

  CHECK(to_itself == (same_host ? 1 : 0));
}

TEST_CASE("HELLOs of strangers, whatever addresses they name, cause no search for a route") {
  Scene scene(2);
  Stranger stranger(scene, 1);
  const SimPort& port = *scene.network().port({0, Channel::kCommand, 0});
  const std::size_t before = port.questions();

  for (int i = 0; i < 10; ++i) stranger.say(0, stranger.hello(0));
  wire::Hello ours = with_an_address_of_zero(stranger);
  ours.nic = 1;
  for (int i = 0; i < 10; ++i) stranger.say(0, ours);
  scene.run_for(milliseconds(1));

  CHECK(stranger.heard(PacketType::kWelcome) == 10);
  CHECK(port.questions() == before);
}

// Returns a HELLO of a stranger that claims to be host 1: by its address, a further address, or a
// NIC it does not use; with an epoch of its own, or the true one.
wire::Hello impostor(Stranger& stranger, int how, std::uint64_t true_epoch) {
  wire::Hello hello = stranger.hello_as(1, 0);
  if (how == 1) hello.epoch = 0;
  if (how == 2 || how == 3) {
    const wire::NicInfo named = hello.nics[0];
    hello.nics[0] = stranger.hello(0).nics[0];
    hello.nics[1] = named;
    hello.nic_count = 2;
    if (how == 3) hello.epoch = 0;
  }
  if (how == 4) hello.epoch = true_epoch;
  if (how == 5) hello.epoch = ~std::uint64_t{0};
  return hello;
}

// Returns the epoch that host 1 tells any caller.
std::uint64_t epoch_of_one(Scene& scene, Stranger& stranger) {
  stranger.say(1, stranger.hello(1));
  scene.run_for(milliseconds(1));
  return stranger.heard().back().hello->epoch;
}

TEST_CASE(
    "a HELLO that names another host's address before connect does not capture that address") {
  const int how = GENERATE(0, 1, 2, 3, 4, 5);
  const bool says_something = GENERATE(true, false);
  const Duration between = GENERATE(microseconds(0), microseconds(2), milliseconds(50));
  CAPTURE(how, says_something, between.count());
  Scene scene(3, [](NodePlan& plan) { plan.command.resolve_delay = microseconds(5); });
  Stranger stranger(scene, 2);
  const wire::Hello hello = impostor(stranger, how, epoch_of_one(scene, stranger));
  const auto early = message_frame(hello, 5);
  Act& at_zero = scene.receive_any(0);
  Act& at_one = scene.receive_any(1);
  Act& none = scene.receive_any(1);

  stranger.say(0, hello, {.early_data = early});
  scene.run_for(between);
  const PeerId there = scene.connect(0, 1);
  if (says_something) scene.send(0, there, 7, 100);

  REQUIRE(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected; },
      seconds(2)));
  if (!says_something) scene.send(0, there, 7, 100);
  REQUIRE(scene.run_until_done(at_one, seconds(2)));
  CHECK(Scene::holds(at_one, 7, 100));
  scene.run_for(seconds(1));
  CHECK_FALSE(none.done());
  CHECK_FALSE(at_zero.done());
  CHECK(scene.engine(0).inspector().peer_status(there) == Status::kOk);
}

TEST_CASE("a HELLO that names the address being called does not capture the call") {
  const int how = GENERATE(0, 1, 2, 3, 4, 5);
  const Duration after = GENERATE(microseconds(0), microseconds(4), microseconds(9));
  const bool crossing = GENERATE(false, true);
  const bool lower_calls = GENERATE(false, true);  // either may have the lower epoch
  CAPTURE(how, after.count(), crossing, lower_calls);
  Scene scene(3, [](NodePlan& plan) { plan.command.resolve_delay = microseconds(5); });
  if (lower_calls) scene.restart(0);
  Stranger stranger(scene, 2);
  const wire::Hello hello = impostor(stranger, how, epoch_of_one(scene, stranger));
  const auto early = message_frame(hello, 5);
  Act& at_zero = scene.receive_any(0);
  Act& at_one = scene.receive_any(1);
  Act& none = scene.receive_any(1);

  const PeerId there = scene.connect(0, 1);
  scene.send(0, there, 7, 100);
  scene.run_for(after);
  stranger.say(0, hello, {.early_data = early});
  if (crossing) {
    scene.run_for(microseconds(1));
    scene.send(1, scene.connect(1, 0), 6, 100);
  }

  REQUIRE(scene.run_until_done(at_one, seconds(2)));
  CHECK(Scene::holds(at_one, 7, 100));
  if (crossing) {
    REQUIRE(scene.run_until_done(at_zero, seconds(2)));
    CHECK(Scene::holds(at_zero, 6, 100));
  }
  scene.run_for(seconds(1));
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnected);
  CHECK_FALSE(none.done());
  CHECK(at_zero.done() == crossing);
}

TEST_CASE("a caller that claims a peer's epoch from its own address does not end the peer") {
  Scene scene(3);
  const auto couple = scene.couple(0, 1);
  Stranger stranger(scene, 2);
  wire::Hello hello = stranger.hello(0);
  hello.epoch = epoch_of_one(scene, stranger);

  stranger.say(0, hello);
  scene.run_for(milliseconds(1));
  REQUIRE(stranger.heard().back().from == 0);
  stranger.prove(0, stranger.heard().back().hello->reply_to, hello);
  scene.run_for(milliseconds(1));

  CHECK(scene.stats(0).peers_connected == 2);
  check_they_talk(scene, couple, 9);
  CHECK(scene.engine(0).inspector().peer_state(couple.there) == PeerState::kConnected);
}

TEST_CASE("forged WELCOMEs do not connect") {
  Scene scene(3);
  Stranger stranger(scene, 2);
  scene.network().wire(1, 0).loss = 1'000'000;  // the true one is lost

  const PeerId there = scene.connect(0, 1);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const wire::ConnectionId guess{i % 4, i * 0x01234567};
    stranger.say(0, stranger.hello_as(1, 0), {.type = PacketType::kWelcome, .to = guess});
    scene.run_for(microseconds(10));
  }
  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnecting);

  scene.network().wire(1, 0).loss = 0;
  CHECK(scene.run_until(
      [&] { return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected; },
      seconds(2)));
}

wire::NicList list_of(const wire::Hello& hello, std::uint32_t count, std::uint8_t nics) {
  wire::NicList list;
  list.count = count;
  list.host = hello.host;
  list.nic_count = nics;
  for (std::uint8_t i = 0; i < nics; ++i) {
    list.nics[i] = hello.nics[0];
    list.nics[i].device = i;
  }
  return list;
}

TEST_CASE("a list of NICs without the one by which the peers met is refused, wire.md 9.11") {
  RailScene scene({2, 1});
  Stranger stranger(scene, 1);
  wire::Hello hello = stranger.hello(0);
  hello.nic_count = wire::kMaxNics;
  hello.nic = wire::kMaxNics - 1;
  std::fill_n(hello.nics.begin(), wire::kMaxNics, hello.nics[0]);  // addresses of one NIC
  stranger.say(0, hello);
  REQUIRE(
      scene.run_until([&] { return stranger.heard(wire::PacketType::kWelcome) != 0; }, seconds(1)));
  const auto id = stranger.heard().back().hello->reply_to;

  for (const std::uint8_t nics : {std::uint8_t{2}, std::uint8_t{wire::kMaxNics}}) {
    std::array<std::byte, 1000> frames{};
    const std::uint32_t count = nics == 2 ? 1 : 2;
    const std::size_t bytes = wire::put_nics(frames.data(), list_of(hello, count, nics));
    stranger.tell(0, id, hello, 100 + count, std::span(frames).first(bytes));
    scene.run_for(milliseconds(10));
    const auto dropped = scene.stats(0).dropped_by_reason;
    CHECK(dropped[static_cast<std::size_t>(wire::Verdict::kOverLimit)] == 1);
  }
}

// Each list but the last has a NIC to which no route is known; the last one has one that is
// reachable.
TEST_CASE("an endless series of NIC lists causes few searches for routes, and the newest counts") {
  RailScene scene({2, 2});
  Stranger stranger(scene, 1);
  wire::Hello hello = stranger.hello(0);
  hello.nic_count = 1;
  hello.epoch = std::numeric_limits<std::uint64_t>::max();  // so that the other end plans the rails
  stranger.say(0, hello);
  REQUIRE(scene.run_until([&] { return stranger.heard(PacketType::kWelcome) != 0; }, seconds(1)));
  const auto id = stranger.heard().back().hello->reply_to;
  const SimPort& port = *scene.network().port({0, Channel::kCommand, 1});
  const std::size_t before = port.questions();
  std::size_t by_rail = 0;
  scene.network().set_observer([&](const Passing& passing) {
    by_rail += passing.from.host == 0 && passing.from.nic == 1 && passing.to.nic == 1;
  });

  constexpr std::uint32_t kLists = 500;
  for (std::uint32_t count = 1; count <= kLists; ++count) {
    wire::NicList list = list_of(hello, count, 2);
    const std::uint8_t nic = count == kLists ? 1 : 3;
    list.nics[1].command = address_of({1, Channel::kCommand, nic});
    list.nics[1].data = address_of({1, Channel::kData, nic});
    std::array<std::byte, 1000> frames{};
    const std::size_t bytes = wire::put_nics(frames.data(), list);
    stranger.tell(0, id, hello, count, std::span(frames).first(bytes));
    scene.run_for(microseconds(100));
  }
  const std::size_t asked = port.questions() - before;

  CHECK(asked > 0);
  CHECK(asked < kLists / 20);
  CHECK(scene.run_until([&] { return by_rail > 0; }, seconds(1)));
}

}  // namespace
}  // namespace pullman::sim
