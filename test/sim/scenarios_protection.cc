// Scenarios: packets are protected with the job's key, and others see them, change them, copy them
// or have another key.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <utility>

#include "sim/packet_view.h"
#include "sim/scene.h"
#include "sim/stranger.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::PacketType;
using wire::Protection;

constexpr std::uint64_t kKey = 7;

Scene::Tweak protected_by(Protection protection, std::vector<std::uint64_t> keys = {kKey}) {
  return [protection, keys](NodePlan& plan) {
    plan.protection = protection;
    plan.job_keys = keys;
    plan.command.bursts = plan.data.bursts = true;
  };
}

// Two hosts, each with a plan of its own.
Scene::Tweak each(Scene::Tweak first, Scene::Tweak second) {
  return
      [first, second, host = 0](NodePlan& plan) mutable { (host++ == 0 ? first : second)(plan); };
}

std::uint64_t dropped(Scene& scene, std::size_t host, wire::Verdict why) {
  return scene.stats(host).dropped_by_reason[static_cast<std::size_t>(why)];
}

// A datagram that was sent, to be sent again.
struct Copy {
  Endpoint from, to;
  std::vector<std::byte> bytes;
};

// Copies all that hosts send.
class Tap {
 public:
  explicit Tap(Scene& scene) {
    scene.network().set_observer([this](const Passing& passing) {
      if (passing.fate == Fate::kInjected) return;
      copies.push_back({passing.from, passing.to, {passing.bytes.begin(), passing.bytes.end()}});
    });
  }
  std::size_t sent_by(std::size_t host) const {
    return static_cast<std::size_t>(std::count_if(
        copies.begin(), copies.end(), [&](const Copy& copy) { return copy.from.host == host; }));
  }

  std::vector<Copy> copies;
};

void send_again(Scene& scene, const Copy& copy) {
  scene.network().inject(copy.from, copy.to, copy.bytes, Duration(0));
}

bool is_initial(const Copy& copy) {
  return wire::is_initial(wire::type_of(copy.bytes.front()));
}

void check_they_talk(Scene& scene, Scene::Couple couple, Tag tag, std::size_t size) {
  Act& at_one = scene.receive(1, couple.back, tag, size);
  Act& at_zero = scene.receive(0, couple.there, tag, size);
  scene.send(0, couple.there, tag, size);
  scene.send(1, couple.back, tag, size);
  REQUIRE(scene.run_until([&] { return at_one.done() && at_zero.done(); }, seconds(5)));
  CHECK(Scene::holds(at_one, tag, size));
  CHECK(Scene::holds(at_zero, tag, size));
}

TEST_CASE("messages of every size arrive over protected packets") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  const auto couple = scene.couple(0, 1);

  Tag tag = 1;
  for (const std::size_t size : {0, 8, 24, 1000, 1424, 5000, 100'000, 3'000'000}) {
    check_they_talk(scene, couple, tag++, size);
  }

  for (const std::size_t host : {0, 1}) {
    CHECK(scene.stats(host).dropped_packets == 0);
    CHECK(scene.stats(host).retransmits == 0);
  }
}

TEST_CASE(
    "an observer finds a message in packets that are authenticated, and not in encrypted ones") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  const auto couple = scene.couple(0, 1);
  const Tap tap(scene);
  const std::size_t size = GENERATE(64, 1000, 200'000);

  Act& receive = scene.receive(1, couple.back, 5, size);
  const Act& send = scene.send(0, couple.there, 5, size);
  REQUIRE(scene.run_until_done(receive));

  // 32 bytes of the message, from a place that no cut divides.
  const auto part = std::span(send.bytes).first(32);
  const bool found = std::any_of(tap.copies.begin(), tap.copies.end(), [&](const Copy& copy) {
    return std::search(copy.bytes.begin(), copy.bytes.end(), part.begin(), part.end()) !=
           copy.bytes.end();
  });
  CHECK(found == (protection == Protection::kAuthenticate));
}

TEST_CASE("every packet leaves protected as it is asked for") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  const Tap tap(scene);
  const auto couple = scene.couple(0, 1);

  check_they_talk(scene, couple, 1, 100'000);
  scene.disconnect(0, couple.there);
  scene.run_for(seconds(1));

  REQUIRE(tap.copies.size() > 100);
  for (const Copy& copy : tap.copies) {
    const PacketView view(copy.bytes);
    REQUIRE(view.accepted());
    REQUIRE(view.protection == protection);
  }
}

// Host 0 calls host 1, which drops every HELLO for that reason and sends nothing.
void check_no_answer(Scene& scene, wire::Verdict why) {
  const Tap tap(scene);

  const PeerId there = scene.connect(0, 1);
  scene.run_for(seconds(2));

  CHECK(scene.engine(0).inspector().peer_state(there) == PeerState::kConnecting);
  CHECK(tap.sent_by(0) > 1);
  CHECK(tap.sent_by(1) == 0);
  CHECK(dropped(scene, 1, why) == tap.sent_by(0));
}

TEST_CASE("engines of two jobs do not meet, and neither answers") {
  Scene scene(2, each(protected_by(Protection::kAuthenticate, {1}),
                      protected_by(Protection::kAuthenticate, {2})));

  check_no_answer(scene, wire::Verdict::kNotAuthentic);
}

TEST_CASE(
    "an engine that protects packets and one that does not do not meet, and neither answers") {
  const auto [first, second] = GENERATE(std::pair{Protection::kOff, Protection::kAuthenticate},
                                        std::pair{Protection::kAuthenticate, Protection::kOff});
  Scene scene(2, each(protected_by(first), protected_by(second)));

  check_no_answer(scene, wire::Verdict::kOtherProtection);
}

Scene::Tweak impatient(Scene::Tweak tweak) {
  return [tweak](NodePlan& plan) {
    tweak(plan);
    plan.config.peer_timeout = seconds(1);
  };
}

const std::pair<Protection, Protection> kOtherWays[] = {
    {Protection::kAuthenticate, Protection::kEncrypt},
    {Protection::kEncrypt, Protection::kAuthenticate}};

TEST_CASE(
    "engines of a job that protect packets in other ways do not meet, and the caller is told") {
  const auto [first, second] = GENERATE(from_range(std::begin(kOtherWays), std::end(kOtherWays)));
  const bool has_several_keys = GENERATE(false, true);
  const std::vector<std::uint64_t> keys =
      has_several_keys ? std::vector<std::uint64_t>{3, kKey} : std::vector{kKey};
  Scene scene(2, each(impatient(protected_by(first, keys)), impatient(protected_by(second))));
  const Tap tap(scene);

  const Act& act = scene.send(0, scene.connect(0, 1), 1, 1'000'000);

  REQUIRE(scene.run_until([&] { return act.done(); }, seconds(5)));
  CHECK(act.status() == Status::kIncompatible);
  CHECK(tap.sent_by(1) > 0);
  CHECK(tap.sent_by(1) <= tap.sent_by(0));
}

TEST_CASE("an engine with another key, and another way of protection, does not answer") {
  const auto [first, second] = GENERATE(from_range(std::begin(kOtherWays), std::end(kOtherWays)));
  Scene scene(2, each(protected_by(first, {1}), protected_by(second, {2})));

  check_no_answer(scene, wire::Verdict::kOtherProtection);
}

TEST_CASE("a refusal that was changed, or is for another call, tells the caller nothing") {
  Scene scene(2, each(impatient(protected_by(Protection::kAuthenticate)),
                      impatient(protected_by(Protection::kEncrypt))));
  const std::size_t at = GENERATE(as<std::size_t>(), 4, 8, 33, 55, 71);
  CAPTURE(at);
  scene.network().set_drop_rule([&scene, at](const Passing& passing) {
    if (passing.from.host != 1 || passing.fate == Fate::kInjected) return false;
    std::vector<std::byte> bytes(passing.bytes.begin(), passing.bytes.end());
    bytes.at(at) ^= std::byte{1};
    scene.network().inject(passing.from, passing.to, bytes, Duration(0));
    return true;
  });

  const Act& act = scene.send(0, scene.connect(0, 1), 1, 1'000'000);

  REQUIRE(scene.run_until([&] { return act.done(); }, seconds(5)));
  CHECK(act.status() == Status::kUnreachable);
}

TEST_CASE("a scanner without the key hears nothing") {
  Scene scene(2, protected_by(Protection::kAuthenticate));
  Stranger stranger(scene, 1);

  stranger.say(0, stranger.hello(0));
  stranger.say(0, stranger.hello(0), {.type = PacketType::kWelcome});
  scene.run_for(seconds(1));

  CHECK(stranger.heard().empty());
  CHECK(scene.stats(0).dropped_packets == 2);
}

TEST_CASE("while a key is replaced, engines that have the old one or the new one are reached") {
  const bool old_one_calls = GENERATE(false, true);
  Scene scene(
      2, each(protected_by(Protection::kEncrypt, {2, 1}), protected_by(Protection::kEncrypt, {1})));

  const std::size_t caller = old_one_calls ? 1 : 0;
  const auto couple = scene.couple(caller, 1 - caller);

  if (old_one_calls) {
    check_they_talk(scene, {.there = couple.back, .back = couple.there}, 1, 5000);
  } else {
    check_they_talk(scene, couple, 1, 5000);
  }
}

TEST_CASE(
    "a call that is repeated with another key before its answer comes leads to a connection") {
  // The first HELLO's answer comes when HELLOs with all keys are under way.
  Scene scene(2, protected_by(Protection::kEncrypt, {1, 2, 3}));
  scene.network().wire(0, 1).delay = milliseconds(450);

  const auto couple = scene.couple(0, 1);

  check_they_talk(scene, couple, 1, 5000);
}

TEST_CASE("two that call each other with different keys get one connection") {
  Scene scene(2, each(protected_by(Protection::kAuthenticate, {1, 2}),
                      protected_by(Protection::kAuthenticate, {2, 1})));

  const PeerId there = scene.connect(0, 1);
  const PeerId back = scene.connect(1, 0);
  REQUIRE(scene.run_until([&] {
    return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected &&
           scene.engine(1).inspector().peer_state(back) == PeerState::kConnected;
  }));

  check_they_talk(scene, {.there = there, .back = back}, 1, 5000);
}

TEST_CASE("every key is tried by every NIC until a peer that comes late is reached") {
  // As many keys as NICs: if both changed with each call, some pairs would never be tried.
  const std::uint64_t key = GENERATE(1, 2);
  const std::uint8_t dead = GENERATE(std::uint8_t{0}, std::uint8_t{1});
  const auto two_nics = [](Scene::Tweak tweak) {
    return [tweak](NodePlan& plan) {
      tweak(plan);
      plan.config.peer_timeout = seconds(80);
      plan.more.push_back({.command = plan.command, .data = plan.data});
    };
  };
  Scene scene(2, each(two_nics(protected_by(Protection::kAuthenticate, {2, 1})),
                      protected_by(Protection::kAuthenticate, {key})));
  scene.network().set_reach(nic::Reach::kDirect, nic::Reach::kDirect);
  bool cut = true;
  // One NIC of the caller never reaches anybody.
  scene.network().set_drop_rule([&](const Passing& passing) {
    const Endpoint& at = passing.from.host == 0 ? passing.from : passing.to;
    return cut || at.nic == dead;
  });

  const PeerId there = scene.connect(0, 1);
  scene.run_for(seconds(1));
  cut = false;

  const auto connected = [&] {
    return scene.engine(0).inspector().peer_state(there) == PeerState::kConnected;
  };
  CHECK(scene.run_until(connected, seconds(80)));
}

TEST_CASE("a packet that was changed on the way is dropped, and the message arrives whole") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  const auto couple = scene.couple(0, 1);
  std::uint64_t changed = 0;
  std::size_t bit = 0;
  // Every third datagram to host 1 is replaced by one that has another bit changed.
  scene.network().set_drop_rule([&, count = 0](const Passing& passing) mutable {
    if (passing.to.host != 1 || passing.fate == Fate::kInjected || ++count % 3 != 0) return false;
    std::vector<std::byte> bytes(passing.bytes.begin(), passing.bytes.end());
    bit = (bit + 37) % (8 * bytes.size());
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    scene.network().inject(passing.from, passing.to, bytes, Duration(0));
    ++changed;
    return true;
  });

  Act& receive = scene.receive(1, couple.back, 1, 2'000'000);
  scene.send(0, couple.there, 1, 2'000'000);

  REQUIRE(scene.run_until_done(receive, seconds(60)));
  CHECK(Scene::holds(receive, 1, 2'000'000));
  CHECK(changed > 100);
  CHECK(scene.stats(1).dropped_packets == changed);
}

TEST_CASE("copies of packets that came are dropped, and nothing is sent for them") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  Tap tap(scene);
  const auto couple = scene.couple(0, 1);
  check_they_talk(scene, couple, 1, 100'000);
  scene.run_for(seconds(1));
  const std::vector<Copy> copies = std::exchange(tap.copies, {});
  REQUIRE(copies.size() > 100);
  REQUIRE(std::count_if(copies.begin(), copies.end(), is_initial) == 2);
  const std::uint64_t duplicates =
      scene.stats(0).duplicate_packets + scene.stats(1).duplicate_packets;

  for (const Copy& copy : copies) {
    send_again(scene, copy);
    scene.run_for(std::chrono::microseconds(50));
  }
  scene.run_for(milliseconds(10));

  CHECK(tap.copies.empty());
  CHECK(scene.stats(0).duplicate_packets + scene.stats(1).duplicate_packets - duplicates ==
        copies.size());
  CHECK(scene.stats(0).dropped_packets + scene.stats(1).dropped_packets == 0);
  check_they_talk(scene, couple, 2, 5000);
}

TEST_CASE("packets that are sent back to their sender are dropped") {
  Scene scene(2, protected_by(Protection::kAuthenticate));
  Tap tap(scene);
  const auto couple = scene.couple(0, 1);
  check_they_talk(scene, couple, 1, 20'000);
  scene.run_for(seconds(1));
  const std::vector<Copy> copies = std::exchange(tap.copies, {});

  for (const Copy& copy : copies) {
    scene.network().inject(copy.to, copy.from, copy.bytes, Duration(0));
    scene.run_for(std::chrono::microseconds(50));
  }
  scene.run_for(milliseconds(10));

  CHECK(tap.copies.empty());
  CHECK(scene.stats(0).dropped_packets + scene.stats(1).dropped_packets == copies.size());
  check_they_talk(scene, couple, 2, 5000);
}

TEST_CASE("copies of a dead peer's packets do not keep it alive") {
  Scene scene(2, [](NodePlan& plan) {
    protected_by(Protection::kAuthenticate)(plan);
    plan.config.peer_timeout = seconds(1);
  });
  scene.network().set_refuses(false);
  Tap tap(scene);
  const auto couple = scene.couple(0, 1);
  check_they_talk(scene, couple, 1, 20'000);
  scene.run_for(milliseconds(100));
  const std::vector<Copy> copies = std::exchange(tap.copies, {});

  // One that called, or one that was called.
  const std::size_t dead = GENERATE(0, 1);
  const std::size_t other = 1 - dead;
  scene.node(dead).end(true);
  const Act& send = scene.send(other, dead == 1 ? couple.there : couple.back, 2, 5000);
  for (int round = 0; round < 40 && !send.done(); ++round) {
    for (const Copy& copy : copies) {
      if (copy.to.host == other) send_again(scene, copy);
    }
    scene.run_for(milliseconds(50));
  }

  REQUIRE(send.done());
  CHECK(send.status() == Status::kUnreachable);
}

TEST_CASE("packets go on under new keys when their numbers pass the end of a phase") {
  const Protection protection = GENERATE(Protection::kAuthenticate, Protection::kEncrypt);
  Scene scene(2, protected_by(protection));
  std::optional<std::uint32_t> last;
  bool passed = false;
  scene.network().set_observer([&](const Passing& passing) {
    const PacketView view(passing.bytes);
    if (passing.from.host != 0 || view.header.type != PacketType::kSequenced) return;
    passed = passed || (last && *last > view.header.number + 0x8000'0000u);
    last = view.header.number;
  });

  // One connection in four begins so that it soon does (Handshake, random_start).
  for (int round = 0; round < 40 && !passed; ++round) {
    last.reset();
    const auto couple = scene.couple(0, 1);
    check_they_talk(scene, couple, 1, 200'000);
    scene.restart(0);
    scene.run_for(seconds(1));
  }

  CHECK(passed);
  CHECK(dropped(scene, 1, wire::Verdict::kNotAuthentic) == 0);
}

TEST_CASE("peers that were silent for long go on with keys that are made again") {
  Scene scene(2, protected_by(Protection::kEncrypt));
  const auto couple = scene.couple(0, 1);
  check_they_talk(scene, couple, 1, 20'000);

  for (Tag tag = 2; tag < 6; ++tag) {
    scene.run_for(seconds(5));
    check_they_talk(scene, couple, tag, 20'000);
  }

  CHECK(scene.stats(0).dropped_packets + scene.stats(1).dropped_packets == 0);
}

TEST_CASE("a connectivity check passes over protected packets of full length") {
  Scene scene(2, protected_by(GENERATE(Protection::kAuthenticate, Protection::kEncrypt)));
  const auto couple = scene.couple(0, 1);

  REQUIRE(scene.engine(0).begin_check(scene.node(0).local_now(), couple.there, seconds(1)) ==
          Status::kOk);
  scene.node(0).touched();
  std::optional<std::vector<RailCheck>> result;
  REQUIRE(scene.run_until([&] {
    result = scene.engine(0).check_result(couple.there);
    return result.has_value();
  }));

  REQUIRE(result->size() == 1);
  CHECK(result->front().finding == RailFinding::kFine);
  CHECK(result->front().largest.bytes + wire::kTagBytes + wire::kInitialBytes == 1472);
}

TEST_CASE("a process that was started anew is found out by checks that only the job can answer") {
  // It has but one of the keys that the other has.
  const std::uint64_t key = GENERATE(1, 2, 3);
  Scene scene(2, each(protected_by(Protection::kAuthenticate, {1, 2, 3}),
                      protected_by(Protection::kAuthenticate, {key})));
  const auto couple = scene.couple(0, 1);
  scene.network().set_refuses(false);

  scene.restart(1);
  Act& receive = scene.receive(0, couple.there, 1, 8);

  // It is asked again when it has been silent for twice as long.
  REQUIRE(scene.run_until_done(receive, seconds(9)));
  CHECK(receive.status() == Status::kPeerRestarted);
}

}  // namespace
}  // namespace pullman::sim
