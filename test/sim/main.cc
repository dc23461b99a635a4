// pullman-sim: runs the engine in a simulated world, as seeds say. See docs/testing.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "base/keyed_random.h"
#include "base/log.h"
#include "sim/runner.h"
#include "sim/simulation.h"

namespace {

using namespace pullman::sim;

// Reads "A..B", or "N" for 1..N.
std::string read_range(const std::string& text, SeedRange& range) {
  const auto number = [](std::string_view digits, std::uint64_t& out) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  const std::size_t dots = text.find("..");
  const bool good = dots == std::string::npos
                        ? number(text, range.last)
                        : number(std::string_view(text).substr(0, dots), range.first) &&
                              number(std::string_view(text).substr(dots + 2), range.last);
  return good && range.first <= range.last ? "" : "seeds are A..B with A <= B, for example 1..1000";
}

void run_one(std::uint64_t seed, const Plan& plan, bool traced = false,
             std::FILE* capture = nullptr) {
  Simulation simulation(plan, traced ? stdout : nullptr, capture);
  const Outcome outcome = simulation.run();
  fmt::print("seed {}: {} packets, {} messages, {} steps, digest {:016x}\n", seed, outcome.packets,
             outcome.messages, outcome.steps, outcome.digest);
  if (outcome.failure.empty()) return;
  fmt::print("seed {} FAILED: {}\n", seed, outcome.failure);
  std::fflush(stdout);
  _exit(1);  // its state may be broken: no teardown
}

void print_keys(const Plan& plan) {
  for (const std::uint64_t number : plan.nodes.front().job_keys) {
    const auto key = pullman::KeyedRandom::key_from_seed(number);
    std::string text;
    for (const auto byte : key) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    fmt::print("key {}\n", text);
  }
}

// Runs seeds that once failed: a line begins with the number, then says why. Those from before
// there were rails failed with one rail, those from before packets were protected without keys, and
// those from before there was a relay without one.
int run_kept(const std::string& path, bool one_rail) {
  std::ifstream file(path);
  std::uint64_t count = 0;
  for (std::string line; std::getline(file, line);) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), seed);
    if (error != std::errc()) continue;
    for (const bool keyless : {true, false}) {
      DrawOptions draw{.one_rail = false, .keyless = keyless, .relays = Relays::kNever};
      if (!one_rail) run_one(seed, draw_plan(seed, draw));
      draw.one_rail = true;
      run_one(seed, draw_plan(seed, draw));
    }
    const Plan relayed =
        draw_plan(seed, {.one_rail = false, .keyless = false, .relays = Relays::kAlways});
    if (relayed.relays && !one_rail) run_one(seed, relayed);
    ++count;
  }
  fmt::print("{} seeds, 0 failed\n", count);
  return count == 0 ? 2 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Here peers are silent all the time: warnings would flood the log.
  if (std::getenv("PULLMAN_LOG") == nullptr) pullman::log().set_level(spdlog::level::err);
  CLI::App app("Runs Pullman's engine in a simulated world: everything follows from the seed.");
  std::uint64_t seed = 1;
  bool traced = false;
  DrawOptions draw;
  std::string range_text;
  RunnerOptions options;
  options.program = argv[0];
  auto* one = app.add_option("--seed", seed, "run this seed");
  app.add_flag("--one-rail", draw.one_rail, "the plans with one NIC in each host");
  app.add_flag("--keyless", draw.keyless, "the plans without keys");
  const std::map<std::string, Relays> relays{
      {"drawn", Relays::kDrawn}, {"never", Relays::kNever}, {"always", Relays::kAlways}};
  app.add_option("--relays", draw.relays, "in plans where there is room: drawn, never or always")
      ->transform(CLI::CheckedTransformer(relays));
  app.add_flag("--trace", traced, "with --seed: print every packet and call");
  std::string pcapng;
  app.add_option("--pcapng", pcapng, "with --seed: write what hosts send to this file");
  bool keys = false;
  app.add_flag("--keys", keys, "with --seed: print the keys of the job first");
  auto* many = app.add_option("--seeds", range_text, "run the seeds A..B")->excludes(one);
  std::string kept;
  app.add_option("--kept", kept, "run the seeds listed in this file")->excludes(one);
  app.add_option("--jobs", options.jobs, "worker processes")->check(CLI::Range(1, 256));
  app.add_option("--max-failures", options.max_failures, "stop after so many");
  CLI11_PARSE(app, argc, argv);
  if (!kept.empty()) return run_kept(kept, draw.one_rail);
  if (many->empty()) {
    std::FILE* const file = pcapng.empty() ? nullptr : std::fopen(pcapng.c_str(), "w");
    if (!pcapng.empty() && file == nullptr) {
      fmt::print(stderr, "{}: {}\n", pcapng, std::strerror(errno));
      return 2;
    }
    const Plan plan = draw_plan(seed, draw);
    if (keys) print_keys(plan);
    run_one(seed, plan, traced, file);
    return file != nullptr && std::fclose(file) != 0 ? 1 : 0;
  }
  options.draw = draw;
  const std::string error = read_range(range_text, options.seeds);
  if (!error.empty()) {
    fmt::print(stderr, "{}\n", error);
    return 2;
  }
  return run_seeds(options) == 0 ? 0 : 1;
}
