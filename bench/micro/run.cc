#include "micro/run.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pullman::bench {
namespace {

// Takes --iterations=N out of the arguments; 0 if it is not there.
benchmark::IterationCount take_iterations(int& argc, char** argv) {
  constexpr const char* kOption = "--iterations=";
  benchmark::IterationCount iterations = 0;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kOption, std::strlen(kOption)) == 0) {
      iterations = std::strtoll(argv[i] + std::strlen(kOption), nullptr, 10);
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return iterations;
}

}  // namespace

int run(int argc, char** argv, const std::vector<Case>& cases) {
  const auto iterations = take_iterations(argc, argv);
  for (const Case& one : cases) {
    auto* registered = benchmark::RegisterBenchmark(one.name.c_str(), one.run);
    if (iterations > 0) registered->Iterations(iterations);
    if (one.threads > 1) registered->Threads(one.threads)->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

void count_items(benchmark::State& state, std::uint64_t items) {
  using benchmark::Counter;
  const auto count = static_cast<double>(items);
  state.counters["items"] = count;
  // Seconds per item, which the console writes with an SI prefix: 85.3n is 85.3 ns.
  state.counters["per_item"] = Counter(count, Counter::kIsRate | Counter::kInvert);
}

}  // namespace pullman::bench
