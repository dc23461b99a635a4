// engine/runs.cc: what becomes of runs when the port has no room for them.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "list_port.h"

namespace pullman {
namespace {

constexpr Tag kTag = 5;

// An engine and its two ports.
struct End {
  End(std::uint8_t host, std::uint64_t seed)
      : command(new ListPort(host, 1, 816)), data(new ListPort(host, 2, 1472)) {
    Config config;
    config.max_peers = 4;
    std::vector<engine::NicPorts> nics(1);
    nics[0].command.reset(command);
    nics[0].data.reset(data);
    engine = std::make_unique<engine::Engine>(config, std::move(nics),
                                              KeyedRandom::key_from_seed(seed), Instant{});
  }
  ~End() { engine->abort(); }
  ListPort* command;
  ListPort* data;
  std::unique_ptr<engine::Engine> engine;
};

struct Pair {
  Pair() {
    peer = a.engine->connect(now, b.engine->address()).peer;
    for (int i = 0; i < 1000; ++i) turn();
    REQUIRE(a.engine->peer_state(peer) == PeerState::kConnected);
  }
  void turn() {
    a.engine->progress(now);
    b.engine->progress(now);
    now += std::chrono::microseconds(10);
    for (auto port : {&End::command, &End::data}) {
      for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
        for (Datagram& packet : (from->*port)->sent) {
          (to->*port)->arriving.push_back(std::move(packet));
        }
        (from->*port)->sent.clear();
      }
    }
  }

  Instant now{std::chrono::seconds(1)};
  std::vector<std::byte> message = std::vector<std::byte>(20'000, std::byte{7});
  std::vector<std::byte> buffer = std::vector<std::byte>(20'000);
  Request receive;
  Request send;
  End a{1, 1};
  End b{2, 2};
  PeerId peer;
};

}  // namespace

TEST_CASE("what the port refused of a message's last run leaves when it has room again") {
  const std::size_t taken = GENERATE(0u, 1u, 6u);
  Pair pair;
  pair.b.engine->receive(pair.now, kAnyPeer, kTag, 0, pair.buffer, pair.receive);
  pair.a.data->room = taken;
  pair.a.engine->send(pair.now, pair.peer, kTag, pair.message, pair.send);
  pair.turn();
  CHECK(pair.a.engine->next_deadline() <= pair.now);  // nobody sleeps on it
  for (int i = 0; i < 10; ++i) pair.turn();
  pair.a.data->room = ListPort::kUnbounded;

  for (int i = 0; i < 20; ++i) pair.turn();

  CHECK(pair.send.status() == Status::kOk);
  CHECK(pair.receive.status() == Status::kOk);
  CHECK((pair.buffer == pair.message));
}

}  // namespace pullman
