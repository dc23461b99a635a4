// What a context adds to its engine: a ping-pong of 64 B between two contexts of this process, over
// the kernel's loopback; with a lock, and with a progress thread beside the program that polls.
//
// Instructions of the thread that polls (it waits, so they differ by 1 % from run to run):
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*pass_on*' micro-context
//       --iterations=20000 --benchmark_filter='^context/ping_pong_64_lock/'
#include <optional>
#include <vector>

#include "micro/run.h"
#include "pullman/pullman.h"

namespace pullman::bench {
namespace {

Config config(Config::Threads threads, Config::Progress progress) {
  Config config;
  config.driver = "udp";
  config.nics = {"lo"};
  config.shared_memory = false;
  config.threads = threads;
  config.progress = progress;
  config.max_peers = 4;
  return config;
}

// One context sends to the other; both are polled until the message has come.
void pass_on(Context& from, PeerId to, Context& at, PeerId source, std::vector<std::byte>& bytes) {
  Request received;
  Request sent;
  at.receive(source, 1, 0, bytes, received);
  from.send(to, 1, bytes, sent);
  while (!received.done() || !sent.done()) {
    at.progress();
    from.progress();
  }
}

template <Config::Threads kThreads, Config::Progress kProgress>
void ping_pong(benchmark::State& state) {
  Context one(config(kThreads, kProgress));
  Context other(config(kThreads, kProgress));
  const PeerId there = one.connect(other.address());
  std::optional<PeerId> back;
  while (!back) {
    one.progress();
    other.progress();
    back = other.accept();
  }
  std::vector<std::byte> bytes(64);
  for (auto _ : state) {
    pass_on(one, there, other, *back, bytes);
    pass_on(other, *back, one, there, bytes);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  using pullman::Config;
  constexpr auto kOne = Config::Threads::kOne;
  constexpr auto kMany = Config::Threads::kMany;
  constexpr auto kCalls = Config::Progress::kCalls;
  constexpr auto kThread = Config::Progress::kThread;
  return run(argc, argv,
             {{"context/ping_pong_64", ping_pong<kOne, kCalls>},
              {"context/ping_pong_64_lock", ping_pong<kMany, kCalls>},
              {"context/ping_pong_64_thread", ping_pong<kOne, kThread>}});
}
