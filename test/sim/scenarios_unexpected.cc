// Many messages that are not received yet: received in reverse order they all arrive; at the memory
// bound a receive that waits for another one fails.
#include <catch2/catch.hpp>
#include <vector>

#include "sim/scene.h"

namespace pullman::sim {
namespace {

using std::chrono::seconds;

struct Sender {
  PeerId back;  // the receiver's handle of it
  std::vector<Act*> sends;
};

// Each host from 1 on sends host 0 that many messages, each with its own tag.
std::vector<Sender> send_all(Scene& scene, std::size_t hosts, std::size_t messages) {
  std::vector<Sender> senders(hosts - 1);
  for (std::size_t host = 1; host < hosts; ++host) {
    const auto [there, back] = scene.couple(host, 0);
    Sender& sender = senders[host - 1];
    sender.back = back;
    for (Tag tag = 1; tag <= messages; ++tag) {
      sender.sends.push_back(&scene.send(host, there, tag, 1 + tag % 16));
    }
  }
  return senders;
}

void receive_in_reverse(Scene& scene, const std::vector<Sender>& senders) {
  for (std::size_t i = senders.size(); i-- > 0;) {
    for (Tag tag = senders[i].sends.size(); tag > 0; --tag) {
      Act& receive = scene.receive(0, senders[i].back, tag, 16);
      REQUIRE(scene.run_until_done(receive, seconds(5)));
      REQUIRE(Scene::holds(receive, tag, 1 + tag % 16));
    }
  }
  for (const Sender& sender : senders) REQUIRE(scene.run_until_done(*sender.sends.back()));
}

}  // namespace

TEST_CASE("thousands of messages of seven senders can be received in reverse order by default") {
  constexpr std::size_t kMessages =
      9000;  // of each sender: more than its share holds, and than the window of ids
  Scene scene(8, [](NodePlan& plan) {
    plan.config.max_peers = Config().max_peers;
    plan.config.unexpected_bytes = Config().unexpected_bytes;
  });

  const auto senders = send_all(scene, 8, kMessages);
  REQUIRE(scene.run_until(
      [&] { return scene.engine(0).inspector().audit().unexpected_bytes == 7 * kMessages * 128; }));
  receive_in_reverse(scene, senders);

  CHECK(scene.engine(0).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("messages that nearly fill a small memory can be received in reverse order") {
  constexpr std::size_t kMessages = 2000;
  Scene scene(4, [](NodePlan& plan) {
    plan.config.max_peers = 4;
    plan.config.unexpected_bytes = 2 << 20;
  });

  const auto senders = send_all(scene, 4, kMessages);
  receive_in_reverse(scene, senders);

  CHECK(scene.engine(0).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("at the memory bound a waiting receive ends with kNoMemory, and all others go on") {
  constexpr std::size_t kMessages = 2000;
  constexpr std::size_t kBudget = 128 * 1024;
  const bool named = GENERATE(true, false);
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = kBudget;
  });
  const auto senders = send_all(scene, 2, kMessages);

  Act& last = scene.receive(0, named ? senders[0].back : kAnyPeer, kMessages, 16);
  REQUIRE(scene.run_until_done(last, seconds(20)));

  CHECK(last.status() == Status::kNoMemory);
  CHECK(scene.engine(0).inspector().audit().unexpected_bytes <= kBudget);
  CHECK(scene.engine(0).inspector().audit().unexpected_bytes > kBudget / 4);
  CHECK_FALSE(senders[0].sends.back()->done());
  for (Tag tag = 1; tag <= kMessages; ++tag) {
    Act& receive = scene.receive(0, senders[0].back, tag, 16);
    REQUIRE(scene.run_until_done(receive, seconds(5)));
    REQUIRE(Scene::holds(receive, tag, 1 + tag % 16));
  }
  REQUIRE(scene.run_until_done(*senders[0].sends.back()));
}

TEST_CASE("at the memory bound a receive waits as long as anything moves") {
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = 128 * 1024;
  });
  const auto senders = send_all(scene, 2, 2000);
  Act& last = scene.receive(0, senders[0].back, 2000, 16);

  for (Tag tag = 1; tag < 10; ++tag) {
    scene.run_for(seconds(5));
    REQUIRE_FALSE(last.done());
    REQUIRE(scene.run_until_done(scene.receive(0, senders[0].back, tag, 16)));
  }

  for (Tag tag = 10; tag < 2000; ++tag) scene.receive(0, senders[0].back, tag, 16);
  REQUIRE(scene.run_until_done(last));
  CHECK(last.status() == Status::kOk);
}

TEST_CASE("memory freed from one peer's messages goes to another that is blocked") {
  Scene scene(3, [](NodePlan& plan) {
    plan.config.max_peers = 4;
    plan.config.unexpected_bytes = 256 * 1024;
  });
  const auto senders = send_all(scene, 3, 1500);
  Act& of_second = scene.receive(0, senders[1].back, 610, 16);
  scene.run_for(seconds(1));
  REQUIRE_FALSE(of_second.done());

  for (Tag tag = 1; tag <= 1500; ++tag) {
    REQUIRE(scene.run_until_done(scene.receive(0, senders[0].back, tag, 16)));
  }

  REQUIRE(scene.run_until_done(of_second, seconds(5)));
  CHECK(of_second.status() == Status::kOk);
}

TEST_CASE("at the memory bound each message received makes room for one more") {
  constexpr std::size_t kMessages = 2000;
  Scene scene(2, [](NodePlan& plan) {
    plan.config.max_peers = 2;
    plan.config.unexpected_bytes = 128 * 1024;
  });
  const auto senders = send_all(scene, 2, kMessages);
  scene.run_for(seconds(1));
  const Tag held = scene.engine(0).inspector().audit().unexpected_bytes / 128;
  REQUIRE(held < kMessages);

  for (Tag tag = 1; tag <= 20; ++tag) {
    REQUIRE(scene.run_until_done(scene.receive(0, senders[0].back, tag, 16)));
    Act& next = scene.receive(0, senders[0].back, held + 2 * tag - 1, 16);
    REQUIRE(scene.run_until_done(next, seconds(1)));
    REQUIRE(next.status() == Status::kOk);
    scene.run_for(seconds(1));
  }

  CHECK(scene.engine(0).inspector().audit().unexpected_bytes == 128 * held);
}

TEST_CASE("at the memory bound a receive waits while a message leaves for another peer") {
  Scene scene(3, [](NodePlan& plan) {
    plan.config.max_peers = 4;
    plan.config.unexpected_bytes = 256 * 1024;
  });
  const auto senders = send_all(scene, 2, 2000);
  const auto [third, back] = scene.couple(0, 2);
  scene.run_for(seconds(1));
  scene.network().wire(0, 2).ns_per_kib = 8'000'000;  // 1 Mb/s
  scene.receive_any(2, 2'500'000);
  Act& slow = scene.send(0, third, 1, 2'500'000);
  Act& last = scene.receive(0, senders[0].back, 2000, 16);

  scene.run_for(seconds(18));
  REQUIRE_FALSE(slow.done());
  REQUIRE_FALSE(last.done());

  REQUIRE(scene.run_until_done(slow));
  REQUIRE(scene.run_until_done(last, seconds(20)));
  CHECK(last.status() == Status::kNoMemory);
}

TEST_CASE("at the memory bound wildcard receives wait for a peer that may still send") {
  Scene scene(3, [](NodePlan& plan) {
    plan.config.max_peers = 4;
    plan.config.unexpected_bytes = 256 * 1024;
  });
  const auto senders = send_all(scene, 2, 2000);
  const auto [there, back] = scene.couple(2, 0);
  Act& of_blocked = scene.receive(0, senders[0].back, 2000, 16);
  Act& of_other = scene.receive(0, kAnyPeer, 3000, 16);
  Act& of_nobody = scene.receive(0, kAnyPeer, 3001, 16);

  scene.run_for(seconds(30));
  REQUIRE(of_blocked.status() == Status::kNoMemory);
  REQUIRE_FALSE(of_other.done());
  scene.send(2, there, 3000, 16);
  REQUIRE(scene.run_until_done(of_other));
  CHECK(of_other.status() == Status::kOk);
  CHECK_FALSE(of_nobody.done());

  scene.disconnect(2, there);
  REQUIRE(scene.run_until_done(of_nobody, seconds(20)));
  CHECK(of_nobody.status() == Status::kNoMemory);
}

}  // namespace pullman::sim
