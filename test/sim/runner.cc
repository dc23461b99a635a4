#include "sim/runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <vector>

#include "sim/simulation.h"

namespace pullman::sim {
namespace {

using Clock = std::chrono::steady_clock;

// A worker's report on a seed, small enough to be written to the pipe at once.
struct Report {
  std::uint64_t seed = 0;
  std::uint64_t packets = 0;
  std::uint64_t messages = 0;
  std::uint64_t digest = 0;
  bool failed = false;
  char failure[2048] = {};
};
static_assert(sizeof(Report) <= 4096);

// Each worker takes every n-th seed.
struct Worker {
  pid_t pid = -1;
  int pipe = -1;
  std::uint64_t seed = 0;  // in progress
  Clock::time_point since;
};

[[noreturn]] void work(int pipe, std::uint64_t first, std::uint64_t last, std::uint64_t stride,
                       const DrawOptions& draw) {
  for (std::uint64_t seed = first; seed <= last; seed += stride) {
    Simulation* simulation = new Simulation(draw_plan(seed, draw));
    const Outcome outcome = simulation->run();
    Report report{.seed = seed,
                  .packets = outcome.packets,
                  .messages = outcome.messages,
                  .digest = outcome.digest,
                  .failed = !outcome.failure.empty()};
    std::strncpy(report.failure, outcome.failure.c_str(), sizeof(report.failure) - 1);
    // After a failure the state may be broken, so it is not torn down.
    if (!report.failed) delete simulation;
    if (write(pipe, &report, sizeof(report)) != sizeof(report) || report.failed) _exit(0);
  }
  _exit(0);
}

class Runner {
 public:
  explicit Runner(const RunnerOptions& options) : options_(options), workers_(options.jobs) {}

  std::uint64_t run() {
    const auto start = Clock::now();
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      launch(workers_[i], options_.seeds.first + i);
    }
    while (any_working() && failed_ < options_.max_failures) wait_for_reports();
    for (Worker& worker : workers_) stop(worker);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    fmt::print("{} packets, {} messages, {:.1f} s, {:.1f} seeds/s, digest {:016x}\n", packets_,
               messages_, seconds, static_cast<double>(done_) / seconds, digest_);
    fmt::print("{} seeds, {} failed\n", done_, failed_);
    return failed_;
  }

 private:
  bool any_working() const {
    for (const Worker& worker : workers_) {
      if (worker.pid > 0) return true;
    }
    return false;
  }

  void launch(Worker& worker, std::uint64_t seed) {
    worker = {};
    if (seed > options_.seeds.last) return;
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) throw std::runtime_error("cannot start a worker");
    if (pid == 0) {
      ::close(ends[0]);
      work(ends[1], seed, options_.seeds.last, workers_.size(), options_.draw);
    }
    ::close(ends[1]);
    worker = {.pid = pid, .pipe = ends[0], .seed = seed, .since = Clock::now()};
  }

  void stop(Worker& worker) {
    if (worker.pid <= 0) return;
    kill(worker.pid, SIGKILL);
    waitpid(worker.pid, nullptr, 0);
    ::close(worker.pipe);
    worker = {};
  }

  void wait_for_reports() {
    std::vector<pollfd> waits;
    for (const Worker& worker : workers_) {
      waits.push_back({.fd = worker.pipe, .events = POLLIN, .revents = 0});
    }
    poll(waits.data(), waits.size(), 1000);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (worker.pid <= 0) continue;
      if (waits[i].revents != 0) {
        take_report(worker);
      } else if (Clock::now() - worker.since > std::chrono::seconds(options_.hang_seconds)) {
        const std::uint64_t seed = worker.seed;
        stop(worker);
        fail(seed, fmt::format("hangs: more than {} s of real time", options_.hang_seconds));
        launch(worker, seed + workers_.size());
      }
    }
  }

  void take_report(Worker& worker) {
    Report report;
    if (read(worker.pipe, &report, sizeof(report)) != sizeof(report)) return bury(worker);
    ++done_;
    packets_ += report.packets;
    messages_ += report.messages;
    digest_ ^= report.digest * (2 * report.seed + 1);
    worker.seed = report.seed + workers_.size();
    worker.since = Clock::now();
    if (report.failed) {
      --done_;
      fail(report.seed, report.failure);
      stop(worker);
      launch(worker, report.seed + workers_.size());
    }
  }

  // A worker ends when it has no seed left, or dies of its seed.
  void bury(Worker& worker) {
    int status = 0;
    waitpid(worker.pid, &status, 0);
    ::close(worker.pipe);
    const std::uint64_t seed = worker.seed;
    worker = {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    fail(seed, WIFSIGNALED(status) ? fmt::format("died of signal {} ({})", WTERMSIG(status),
                                                 strsignal(WTERMSIG(status)))
                                   : fmt::format("exited with {}", WEXITSTATUS(status)));
    launch(worker, seed + workers_.size());
  }

  void fail(std::uint64_t seed, const std::string& why) {
    ++done_;
    ++failed_;
    fmt::print("seed {} FAILED: {}\n  replay: {} --seed {} --trace\n", seed, why, options_.program,
               seed);
    std::fflush(stdout);
  }

  const RunnerOptions options_;
  std::vector<Worker> workers_;
  std::uint64_t done_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t digest_ = 0;
};

}  // namespace

std::uint64_t run_seeds(const RunnerOptions& options) {
  return Runner(options).run();
}

}  // namespace pullman::sim
