#include "line.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>

namespace bare {
namespace {

constexpr unsigned kWays = 20'000;

void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

std::vector<int> processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("sched_getaffinity()");
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) found.push_back(i);
  }
  if (found.size() < 2) throw std::runtime_error("needs two processors");
  return found;
}

struct Ball {
  alignas(128) std::atomic<unsigned> at = 0;

  void await(unsigned value) const {
    while (at.load(std::memory_order_acquire) != value) {
    }
  }
};

}  // namespace

void pass(const Line& options) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int> where = processors();
  Ball ball;
  const unsigned all = options.rounds * kWays;
  std::thread other([&] {
    run_on(where[1]);
    for (unsigned i = 0; i < all; ++i) {
      ball.await(2 * i + 1);
      ball.at.store(2 * i + 2, std::memory_order_release);
    }
  });
  run_on(where[0]);
  std::vector<double> ns;
  for (unsigned round = 0; round < options.rounds; ++round) {
    const auto begin = Clock::now();
    for (unsigned i = round * kWays; i < (round + 1) * kWays; ++i) {
      ball.at.store(2 * i + 1, std::memory_order_release);
      ball.await(2 * i + 2);
    }
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    ns.push_back(took.count() / (2 * kWays));
  }
  other.join();
  std::sort(ns.begin(), ns.end());
  std::printf("a line of the cache, from one processor to the other: %.0f ns (%.0f to %.0f)\n",
              ns[ns.size() / 2], ns.front(), ns.back());
}

}  // namespace bare
