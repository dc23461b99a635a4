// peers: what a user would pick instead of Pullman, measured as pullman-perf measures. The same
// options and the same rows; --driver says what carries the messages, at both ends:
//
//   sockets             plain TCP with TCP_NODELAY, a system call for each message
//   sleeping            the same; an end that waits sleeps, as most programs do
//   batched             as sockets; messages sent together are copied together and leave together
//   tcp;ofi_rxm, ...    a provider of libfabric's, reliable datagrams with tags
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "fabric.h"
#include "patterns.h"
#include "sockets.h"

namespace peers {

std::unique_ptr<Carrier> make_carrier(const Meeting& meeting) {
  const std::string& driver = meeting.options.driver;
  if (driver == "sockets") {
    return std::make_unique<Sockets>(meeting, Batching::kNone, Idle::kPolls);
  }
  if (driver == "sleeping") {
    return std::make_unique<Sockets>(meeting, Batching::kNone, Idle::kSleeps);
  }
  if (driver == "batched") {
    return std::make_unique<Sockets>(meeting, Batching::kBytes, Idle::kPolls);
  }
  return std::make_unique<Fabric>(meeting, driver);
}

namespace {

using perf::Job;
using perf::Options;

void run_client(const Options& options) {
  perf::RawControl control = perf::RawControl::connect(options);
  perf::Report report(options, options.driver);
  for (const std::size_t size : options.sizes) {
    Job job;
    job.test = options.test;
    job.size = size;
    job.window = options.window;
    job.iterations = options.iterations;
    job.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(options.duration_s * 1e9));
    control.say(to_json(job));
    const auto carrier = make_carrier({control, options, job});
    const Ends ends{control, *carrier, options.patience_s};
    measure(ends, warm_up(job));
    perf::Outcome outcome = measure(ends, job);
    report.row(size, outcome);
    control.say({{"next", true}});
  }
  control.say({{"bye", true}});
}

void run_server(const Options& options) {
  perf::RawControl control = perf::RawControl::accept(options);
  for (nlohmann::json word = control.hear(); !word.contains("bye"); word = control.hear()) {
    const Job job = perf::to_job(word);
    const auto carrier = make_carrier({control, options, job});
    const Ends ends{control, *carrier, options.patience_s};
    for (word = control.hear(); !word.contains("next"); word = control.hear()) {
      serve(ends, perf::to_job(word));
    }
  }
}

}  // namespace

}  // namespace peers

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    perf::Options options;
    int exit_code = 0;
    if (!perf::parse_command_line(argc, argv, options, exit_code)) return exit_code;
    if (options.driver.empty() || options.raw || options.check || !options.nics.empty() ||
        options.test == perf::Test::kFailover) {
      throw perf::Failure("wants a --driver, and knows neither failover, --raw, --check nor --nic");
    }
    if (options.port == 0) options.port = perf::kDefaultPort;
    options.host.empty() ? peers::run_server(options) : peers::run_client(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "peers: {}\n", error.what());
    return 1;
  }
}
