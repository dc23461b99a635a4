// Many threads on one context: its own lock (Config::threads = many) beside a lock that the program
// puts around every call of a context that one thread at a time may call. What it must not be is
// slower than that.
#include <mutex>
#include <optional>
#include <vector>

#include "micro/run.h"
#include "pullman/pullman.h"

namespace pullman::bench {
namespace {

Config config(Config::Threads threads) {
  Config config;
  config.driver = "udp";
  config.nics = {"lo"};
  config.shared_memory = false;
  config.threads = threads;
  config.max_peers = 4;
  return config;
}

// Two contexts of this process on the loopback interface.
struct Pair {
  explicit Pair(Config::Threads threads)
      : one(config(threads)), other(config(threads)), there(one.connect(other.address())) {
    while (!back) {
      one.progress();
      other.progress();
      back = other.accept();
    }
  }
  Context one;
  Context other;
  PeerId there;
  std::optional<PeerId> back;
  std::mutex lock;
};

// No lock of the program's.
struct None {
  explicit None(std::mutex&) {}
};

// Each thread sends 8 bytes from one context to the other, on its own tag, and waits for them.
template <Config::Threads kThreads, typename Lock>
void pass_on(benchmark::State& state) {
  static std::optional<Pair> pair;
  if (state.thread_index() == 0) pair.emplace(kThreads);
  const Tag tag = static_cast<Tag>(state.thread_index());
  std::vector<std::byte> bytes(8);
  for (auto _ : state) {
    Request sent;
    Request received;
    {
      Lock held(pair->lock);
      pair->other.receive(*pair->back, tag, 0, bytes, received);
    }
    {
      Lock held(pair->lock);
      pair->one.send(pair->there, tag, bytes, sent);
    }
    while (!received.done() || !sent.done()) {
      Lock held(pair->lock);
      pair->one.progress();
      pair->other.progress();
    }
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
  if (state.thread_index() == 0) pair.reset();
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  using Threads = pullman::Config::Threads;
  std::vector<Case> cases;
  for (const int threads : {1, 2, 4}) {
    cases.push_back(
        {"threads/program_s_lock", pass_on<Threads::kOne, std::unique_lock<std::mutex>>, threads});
    cases.push_back({"threads/many", pass_on<Threads::kMany, None>, threads});
  }
  return run(argc, argv, cases);
}
