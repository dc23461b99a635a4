#include "run.h"

#include <fmt/format.h>

#include <algorithm>

#include "failover.h"
#include "patterns.h"
#include "report.h"
#include "session.h"

namespace perf {

namespace {

pullman::Config config_for(const Options& options, std::uint16_t port) {
  pullman::Config config = pullman::Config::from_environment();
  if (!options.driver.empty()) config.driver = options.driver;
  if (!options.nics.empty()) config.nics = options.nics;
  if (options.sleep_after.count() != 0) config.sleep_after = options.sleep_after;
  config.port = port;
  return config;
}

// What the server counted, into what the client measured. A one-way stream is measured where it
// arrives.
void combine(const Job& job, const nlohmann::json& server, Outcome& outcome) {
  const std::chrono::nanoseconds elapsed(server.value("elapsed_ns", std::int64_t{0}));
  const auto messages = server.value("messages", std::uint64_t{0});
  switch (job.test) {
    case Test::kLatency:
    case Test::kRate:
      break;
    case Test::kBandwidth:
    case Test::kFailover:
      outcome.elapsed = elapsed;
      outcome.messages = messages;
      break;
    case Test::kBidirectional:
      outcome.elapsed = std::max(outcome.elapsed, elapsed);
      outcome.messages += messages;
      break;
  }
  outcome.errors += server.value("errors", std::uint64_t{0});
  outcome.retransmits += server.value("retransmits", std::uint64_t{0});
  outcome.spurious_retransmits += server.value("spurious_retransmits", std::uint64_t{0});
  outcome.evacuated += server.value("evacuated", std::uint64_t{0});
  for (const auto& [name, count] : kNicCounts) {
    outcome.nic.*count += server.value(name, std::uint64_t{0});
  }
}

// HOST may be a name, an IPv4 or IPv6 address, or what an opaque fabric calls one.
std::string server_address(const Options& options) {
  const std::string& host = options.host;
  if (host.rfind("hex:", 0) == 0) return host;
  const bool bare_v6 = host.find(':') != std::string::npos && host.front() != '[';
  return bare_v6 ? fmt::format("[{}]:{}", host, options.port)
                 : fmt::format("{}:{}", host, options.port);
}

NicCounts nic_counts(const pullman::Stats& now, const pullman::Stats& before) {
  return {.send_errors = now.nic_send_errors - before.nic_send_errors,
          .receive_overflows = now.nic_receive_overflows - before.nic_receive_overflows,
          .bursts_sent = now.nic_bursts_sent - before.nic_bursts_sent,
          .bursts_received = now.nic_bursts_received - before.nic_bursts_received,
          .bursts_refused = now.nic_bursts_refused};  // one that was refused before still is
}

// What Pullman and its NIC counted between two looks.
class Counted {
 public:
  explicit Counted(const pullman::Context& context) : context_(context), before_(context.stats()) {}

  void add_to(Outcome& outcome) const {
    const pullman::Stats now = context_.stats();
    outcome.retransmits = now.retransmits - before_.retransmits;
    outcome.spurious_retransmits = now.spurious_retransmits - before_.spurious_retransmits;
    outcome.evacuated = now.evacuated_packets - before_.evacuated_packets;
    outcome.nic = nic_counts(now, before_);
  }

 private:
  const pullman::Context& context_;
  pullman::Stats before_;
};

Outcome measure(Session& session, const Job& job, Failover& failover) {
  switch (job.test) {
    case Test::kLatency:
      return measure_latency(session, job);
    case Test::kFailover:
      return failover.measure(session, job);
    case Test::kBandwidth:
    case Test::kBidirectional:
    case Test::kRate:
      break;
  }
  return measure_flow(session, job);
}

Outcome serve(Session& session, const Job& job) {
  if (job.test == Test::kLatency) return serve_latency(session, job);
  return job.test == Test::kFailover ? serve_failover(session, job) : serve_flow(session, job);
}

Outcome run_job(Session& session, const Job& job, const Options& options) {
  session.say(Word::kJob, to_json(job));
  session.hear(Word::kReady);
  const Counted counted(session.context());
  Failover failover(job.warm_up ? Options{} : options);
  Outcome outcome = measure(session, job, failover);
  const nlohmann::json server = session.hear(Word::kResult);
  counted.add_to(outcome);
  combine(job, server, outcome);
  if (job.test == Test::kFailover) failover.conclude(session, server, outcome);
  return outcome;
}

// Room for what is said only with --rails, where it is not part of the results anyway.
void add_rails(const Session& session, Outcome& outcome) {
  const auto rails = session.context().rails(session.peer());
  outcome.more["rails"] = nlohmann::ordered_json::array();
  for (const pullman::RailView& rail : rails) outcome.more["rails"].push_back(to_json(rail));
  outcome.text = "\n" + rail_table(rails);
}

void check_failover(const Options& options) {
  if (options.test != Test::kFailover) return;
  if (options.sizes.front() < kLeastFailoverBytes) {
    throw Failure(fmt::format("failover's messages have at least {} bytes", kLeastFailoverBytes));
  }
  if (options.sizes.size() > 1 && !options.output.empty()) {
    throw Failure("--output is for one size");
  }
  Cutter::check(parse_cuts(options.cuts));
}

// What is outstanding when the time is over has to arrive all the same, at either end: a run is to
// end with its duration.
std::size_t window_for(const Options& options, std::size_t size) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  if (options.window_given || options.test != Test::kBidirectional || size == 0) {
    return options.window;
  }
  return std::clamp<std::size_t>(kMaxBytes / size, 2, options.window);
}

// Names the driver, or memory if the server is on this host: it shares it soon after the first
// messages.
std::string way_to(pullman::Context& context, pullman::PeerId server) {
  constexpr auto kSettled = std::chrono::milliseconds(20);
  const auto end = Clock::now() + kSettled;
  while (Clock::now() < end && !context.shares_memory(server)) context.progress();
  return context.shares_memory(server) ? "memory" : context.driver();
}

}  // namespace

int run_client(const Options& options) {
  check_failover(options);
  const pullman::Config config = config_for(options, 0);
  pullman::Context context(config);
  Session session(context, options);
  session.meet_server(server_address(options));

  Report report(options, way_to(context, session.peer()));
  std::uint64_t wrong = 0;
  std::uint64_t run = 0;
  for (const std::size_t size : options.sizes) {
    Job job{options.test,
            size,
            window_for(options, size),
            options.check,
            ++run,
            options.iterations,
            std::chrono::nanoseconds(static_cast<std::int64_t>(options.duration_s * 1e9)),
            &report};
    if (job.test == Test::kFailover) job.check = true;
    wrong += run_job(session, warm_up(job), options).errors;
    job.run = ++run;
    Outcome outcome = run_job(session, job, options);
    wrong += outcome.errors;
    if (options.rails && job.test != Test::kFailover) add_rails(session, outcome);
    report.row(size, outcome);
  }
  session.say(Word::kJob, {{"bye", true}});
  context.close();
  if (wrong != 0) {
    throw Failure(fmt::format(
        "{} messages arrived {}", wrong,
        options.test == Test::kFailover ? "wrong, twice, too late or never" : "with wrong bytes"));
  }
  return 0;
}

int run_server(const Options& options) {
  const pullman::Config config = config_for(options, options.port);
  pullman::Context context(config);
  fmt::print(stderr, "serving one client at {}\n", context.address());
  Session session(context, options);
  nlohmann::json word = session.meet_client();
  while (!word.contains("bye")) {
    const Job job = to_job(word);
    const Counted counted(context);
    Outcome outcome = serve(session, job);
    counted.add_to(outcome);
    nlohmann::json result = {{"messages", outcome.messages},
                             {"elapsed_ns", outcome.elapsed.count()},
                             {"errors", outcome.errors},
                             {"retransmits", outcome.retransmits},
                             {"spurious_retransmits", outcome.spurious_retransmits},
                             {"evacuated", outcome.evacuated}};
    for (const auto& [name, count] : kNicCounts) result[name] = outcome.nic.*count;
    for (const auto& [key, value] : outcome.more.items()) result[key] = value;
    session.say(Word::kResult, result);
    if (!outcome.series.empty()) session.say_bytes(Word::kSeries, outcome.series);
    word = session.hear(Word::kJob);
  }
  context.close();
  return 0;
}

}  // namespace perf
