// engine/engine.cc: when the NICs' events are looked at.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "list_port.h"

namespace pullman {
namespace {

using std::chrono::microseconds;

struct Scene {
  Scene() {
    Config config;
    config.max_peers = 4;
    std::vector<engine::NicPorts> nics(1);
    nics[0].command.reset(command);
    nics[0].data.reset(data);
    engine = std::make_unique<engine::Engine>(config, std::move(nics),
                                              engine::Identity{KeyedRandom::key_from_seed(1)}, now);
  }
  ~Scene() { engine->abort(); }

  void busy_turn() {
    data->arriving.emplace_back(100);
    REQUIRE(engine->progress(now) == 1);
  }

  Instant now{std::chrono::seconds(1)};
  ListPort* command = new ListPort(1, 1, 816);
  ListPort* data = new ListPort(1, 2, 1472);
  std::unique_ptr<engine::Engine> engine;
};

}  // namespace

TEST_CASE("news of a NIC is heard within 200 us although every turn brings packets") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.command->events.push_back({.kind = nic::PortEvent::Kind::kLinkDown});
  const Instant told = scene.now;
  while (!scene.command->events.empty() && scene.now - told < microseconds(1000)) {
    scene.now += microseconds(10);
    scene.busy_turn();
  }
  CHECK(scene.now - told <= microseconds(200));
  CHECK(scene.now - told > microseconds(20));  // not a system call in each turn
}

TEST_CASE("who has a turn seldom, as one of many, hears it within four, and asks once") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.command->events.push_back({.kind = nic::PortEvent::Kind::kLinkDown});
  const std::size_t before = scene.command->looked_at;
  for (int turn = 0; turn < 4; ++turn) {
    scene.now += microseconds(700);
    scene.engine->progress(scene.now);
  }
  CHECK(scene.command->events.empty());
  CHECK(scene.command->looked_at == before + 1);
}

TEST_CASE("who is about to sleep hears it at once") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.command->events.push_back({.kind = nic::PortEvent::Kind::kLinkDown});
  scene.engine->progress(scene.now);
  REQUIRE_FALSE(scene.command->events.empty());
  CHECK(scene.engine->next_deadline() <= scene.now + microseconds(100));  // nobody sleeps over it

  scene.engine->prepare_to_block();
  scene.engine->progress(scene.now);

  CHECK(scene.command->events.empty());
}

TEST_CASE("an address that is resolved is heard of in the same turn although packets come") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.engine->connect(scene.now, scene.engine->address());
  scene.busy_turn();
  CHECK(scene.command->sent.size() == 1);  // HELLO
}

}  // namespace pullman
