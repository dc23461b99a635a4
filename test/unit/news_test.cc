// engine/engine.cc: when the NICs' events are polled.
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

TEST_CASE("a NIC's event is heard within 200 us although every turn brings packets") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.command->events.push_back({.kind = nic::PortEvent::Kind::kLinkDown});
  const Instant told = scene.now;
  while (!scene.command->events.empty() && scene.now - told < microseconds(1000)) {
    scene.now += microseconds(10);
    scene.busy_turn();
  }
  CHECK(scene.now - told <= microseconds(200));
  CHECK(scene.now - told > microseconds(20));  // not by a system call in each turn
}

TEST_CASE("an engine with rare turns hears a NIC's event within four, and polls for it once") {
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

TEST_CASE("an engine that is about to block hears a NIC's event at once") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.command->events.push_back({.kind = nic::PortEvent::Kind::kLinkDown});
  scene.engine->progress(scene.now);
  REQUIRE_FALSE(scene.command->events.empty());
  CHECK(scene.engine->next_deadline() <= scene.now + microseconds(100));  // no sleep beyond

  scene.engine->prepare_to_block();
  scene.engine->progress(scene.now);

  CHECK(scene.command->events.empty());
}

TEST_CASE("a resolved address is heard of in the same turn although packets arrive") {
  Scene scene;
  scene.engine->progress(scene.now);
  scene.engine->connect(scene.now, scene.engine->address());
  scene.busy_turn();
  CHECK(scene.command->sent.size() == 1);  // HELLO
}

}  // namespace pullman
