// The whole path, both ends: two engines on a NIC in memory. An item is a packet (of messages that
// share packets, a message), sent, received and acknowledged, so a figure is what both ends
// together spend on it, the NIC's copy included.
#include <array>

#include "micro/link_pair.h"
#include "micro/run.h"

namespace pullman::bench {
namespace {

using wire::Protection;

constexpr Tag kTag = 7;

// A message each way, never two under way: each packet brings the ACK of the one before it.
template <std::size_t kOthers, Protection kProtection = Protection::kOff, bool kTraced = false>
void ping_pong(benchmark::State& state) {
  LinkPair pair(kOthers, kProtection, kTraced);
  std::array<std::byte, 64> from{}, to{};
  Request send, receive;
  const auto one_way = [&](LinkPair::End& sender, LinkPair::End& receiver) {
    receiver.engine->matching().receive(pair.now(), receiver.peer, kTag, 0, to, receive);
    sender.engine->sending().send(pair.now(), sender.peer, kTag, from, send);
    receiver.engine->progress(pair.tick());
    // Now and then a message does not leave from inside send(): an ALLOWANCE is on its way.
    while (!receive.done()) pair.turn();
  };
  const std::uint64_t before = pair.packets();
  for (auto _ : state) {
    one_way(pair.a(), pair.b());
    one_way(pair.b(), pair.a());
  }
  count_items(state, pair.packets() - before);
}

// Messages one way, kWindow under way, all of them expected.
template <std::size_t kSize, std::size_t kWindow, Protection kProtection = Protection::kOff>
void stream(benchmark::State& state) {
  LinkPair pair(0, kProtection);
  std::vector<std::byte> from(kSize), to(kSize);
  std::array<Request, kWindow> sends, receives;
  const auto finish = [&](std::size_t slot) {
    while (!sends[slot].done() || !receives[slot].done()) pair.turn();
  };
  const auto start = [&](std::size_t slot) {
    auto& [a, a_peer] = pair.a();
    auto& [b, b_peer] = pair.b();
    b->matching().receive(pair.now(), b_peer, kTag, 0, to, receives[slot]);
    a->sending().send(pair.now(), a_peer, kTag, from, sends[slot]);
  };
  for (std::size_t slot = 0; slot < kWindow; ++slot) start(slot);
  std::size_t next = 0;
  const std::uint64_t before = pair.packets();
  for (auto _ : state) {
    finish(next);
    start(next);
    next = (next + 1) % kWindow;
  }
  const auto messages = static_cast<std::uint64_t>(state.iterations());
  count_items(state, kSize < 2048 ? messages : pair.packets() - before);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kSize));
  for (std::size_t slot = 0; slot < kWindow; ++slot) finish(slot);
}

// A turn of a connected engine that finds nothing to do.
void idle_turn(benchmark::State& state) {
  LinkPair pair;
  for (auto _ : state) pair.a().engine->progress(pair.tick());
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// An item is a connection: a call, a message, and the end of both ends.
template <Protection kProtection>
void connection(benchmark::State& state) {
  LinkPair pair(0, kProtection);
  std::array<std::byte, 64> from{}, to{};
  auto& caller = *pair.a().engine;
  auto& called = *pair.b().engine;
  const auto disconnect = [&] {
    caller.disconnect(pair.now(), pair.a().peer);
    while (called.inspector().stats().peers_connected != 0 ||
           caller.inspector().stats().peers_connected != 0) {
      pair.turn();
    }
    called.disconnect(pair.now(), pair.b().peer);
  };
  for (auto _ : state) {
    disconnect();
    pair.a().peer = caller.connect(pair.now(), called.address()).peer;
    Request send, receive;
    called.matching().receive(pair.now(), kAnyPeer, kTag, 0, to, receive);
    caller.sending().send(pair.now(), pair.a().peer, kTag, from, send);
    while (!send.done() || !receive.done()) pair.turn();
    pair.b().peer = *called.accept();
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"link/ping_pong_64", ping_pong<0>},
              {"link/ping_pong_64_among_1000_peers", ping_pong<999>},
              {"link/traced/ping_pong_64", ping_pong<0, Protection::kOff, true>},
              {"link/stream_1M", stream<1 << 20, 4>},
              {"link/stream_64", stream<64, 64>},
              {"link/stream_1424", stream<1424, 64>},  // fills a packet
              {"link/stream_1425", stream<1425, 64>},
              {"link/idle_turn", idle_turn},
              {"link/connection", connection<Protection::kOff>},
              {"link/authenticated/ping_pong_64", ping_pong<0, Protection::kAuthenticate>},
              {"link/authenticated/stream_1M", stream<1 << 20, 4, Protection::kAuthenticate>},
              {"link/authenticated/connection", connection<Protection::kAuthenticate>},
              {"link/encrypted/stream_1M", stream<1 << 20, 4, Protection::kEncrypt>}});
}
