// How every micro-benchmark is registered and run: google-benchmark, and one option more.
//
// --iterations=N runs each benchmark exactly N times over, so that tools/callgrind.py can count
// instructions: the difference between N and 2 N is free of set-up.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace pullman::bench {

struct Case {
  std::string name;
  void (*run)(benchmark::State&);
  int threads = 1;  // that run it at a time
};

int run(int argc, char** argv, const std::vector<Case>& cases);

// What the figures are divided by: packets, messages or operations done in all iterations.
void count_items(benchmark::State& state, std::uint64_t items);

}  // namespace pullman::bench
