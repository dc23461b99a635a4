// One run of one seed: a stage, its programs and faults; then the faults end, and everything must
// finish.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "sim/allowed_failures.h"
#include "sim/ledger.h"
#include "sim/plan.h"
#include "sim/program.h"
#include "sim/stage.h"
#include "sim/trace.h"

namespace pullman::sim {

struct Outcome {
  std::string failure;       // empty: none
  std::uint64_t digest = 0;  // of every packet: equal for equal seeds
  std::uint64_t packets = 0;
  std::uint64_t messages = 0;
  std::uint64_t steps = 0;
};

class Simulation {
 public:
  // `trace` and `capture` may be null.
  explicit Simulation(const Plan& plan, std::FILE* trace = nullptr, std::FILE* capture = nullptr);
  ~Simulation();

  Outcome run();

 private:
  struct Closing {
    std::uint8_t host = 0;
    Instant deadline;
  };

  // The phases of a run, in order (simulation.cc).
  void work();
  void finish();
  void settle();
  void say_last_words();
  void close();
  void check_stats();

  // The invariants of rails (rail_oracles.cc).
  void reinstate();
  void restore_rails();
  std::string missing_rail(std::size_t a, const std::vector<RailView>& rails_of_a, std::size_t b,
                           const std::vector<RailView>& rails_of_b);
  std::string rail_not_up();
  bool blames_nobody() const;
  void check_blame();
  bool cut_for(const Duration limit, std::size_t a, std::size_t b, bool home_only) const;

  // The faults of hosts (faults.cc).
  void excuse(const Plan& plan);
  void excuse_silence(std::uint8_t a, std::uint8_t b);
  void excuse_silence_of(std::uint8_t host);
  void excuse_relayed();
  Duration shortest_timeout() const;
  bool step(Instant limit);
  void happen(const Fault& happening);
  void end_process(std::uint8_t host, bool quietly);
  void reboot(std::uint8_t host);

  bool failed() const { return stage_.findings().any(); }
  bool all_sent_and_received() const;
  bool all_quiet();
  bool all_idle();
  bool all_drained();
  bool may_lose_good_byes() const;
  std::vector<std::uint32_t> living() const;
  void did_not_finish(const char* what);

  const Plan plan_;
  Trace trace_;
  Capture capture_;
  mutable Stage stage_;
  AllowedFailures excuses_;
  Findings ignored_;  // with an attacker on the path only crashes count
  Ledger ledger_;
  Program::Shared shared_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<Fault> waiting_;  // faults to come, the next one last
  std::vector<Closing> closing_;
  std::vector<std::pair<Instant, std::uint8_t>> reboots_;
  std::uint64_t steps_ = 0;
};

}  // namespace pullman::sim
