// --raw: the client goes through the sizes, the server does as it is told, over bare datagrams.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "pullman/config.h"
#include "raw_fabric.h"
#include "raw_patterns.h"
#include "raw_udp.h"
#include "run.h"

namespace perf {

namespace {

std::string driver_of(const Options& options) {
  std::string driver =
      options.driver.empty() ? pullman::Config::from_environment().driver : options.driver;
  if (driver == "auto") {
    driver = pullman::Config::from_environment().provider.empty() ? "udp" : "fabric";
  }
  if (driver != "fabric" && driver != "udp") {
    throw Failure(fmt::format("--raw knows the drivers fabric and udp, not '{}'", driver));
  }
  return driver;
}

std::unique_ptr<RawNic> open_nic(const Options& options, const RawControl& control) {
  const std::string host = options.nics.empty() ? control.local_host() : options.nics.front();
  if (driver_of(options) == "udp") return std::make_unique<RawUdp>(host);
  return std::make_unique<RawFabric>(host, pullman::Config::from_environment().provider);
}

std::vector<std::byte> to_bytes(const nlohmann::json& line) {
  std::vector<std::byte> bytes;
  if (!line.contains("address") || !line["address"].is_array()) return bytes;
  for (const auto& byte : line["address"]) {
    bytes.push_back(static_cast<std::byte>(byte.is_number_integer() ? byte.get<int>() : 0));
  }
  return bytes;
}

nlohmann::json to_json(const std::vector<std::byte>& address) {
  nlohmann::json bytes = nlohmann::json::array();
  for (const std::byte byte : address) bytes.push_back(static_cast<int>(byte));
  return {{"address", bytes}};
}

bool is_exchange(const Job& job) {
  return job.test == Test::kLatency || job.test == Test::kRate;
}

// Before the first packet: nothing of the last job, and how packets will come.
void prepare(RawEnds ends, const Job& job) {
  ends.nic.drain();
  const bool allowed = pullman::Config::from_environment().offloads;
  ends.nic.expect_bursts(allowed && RawPackets(ends.nic, job).bursts());
}

Outcome run_job(RawEnds ends, const Job& job) {
  ends.control.say(to_json(job));
  ends.control.hear();
  prepare(ends, job);
  if (!is_exchange(job)) return measure_raw_flood(ends, job);
  Outcome outcome = measure_raw_exchange(ends, job);
  outcome.errors += ends.control.hear().value("errors", std::uint64_t{0});
  return outcome;
}

void serve_job(RawEnds ends, const Job& job) {
  prepare(ends, job);
  if (!is_exchange(job)) {
    serve_raw_flood(ends, job);
    return;
  }
  const Outcome outcome = serve_raw_exchange(ends, job);
  ends.control.say({{"errors", outcome.errors}});
}

}  // namespace

int run_raw_client(const Options& options) {
  const std::string driver = driver_of(options);
  RawControl control = RawControl::connect(options);
  const auto nic = open_nic(options, control);
  control.say(to_json(nic->address()));
  nic->set_peer(to_bytes(control.hear()));
  const RawEnds ends{control, *nic, options.patience_s};

  Report report(options, driver);
  std::uint64_t run = 0;
  for (const std::size_t size : options.sizes) {
    Job job{options.test,
            size,
            options.window,
            options.check,
            ++run,
            options.iterations,
            std::chrono::nanoseconds(static_cast<std::int64_t>(options.duration_s * 1e9)),
            &report};
    run_job(ends, warm_up(job));
    job.run = ++run;
    Outcome outcome = run_job(ends, job);
    report.row(size, outcome);
  }
  control.say({{"bye", true}});
  return 0;
}

int run_raw_server(const Options& options) {
  driver_of(options);
  RawControl control = RawControl::accept(options);
  const auto nic = open_nic(options, control);
  nic->set_peer(to_bytes(control.hear()));
  control.say(to_json(nic->address()));
  const RawEnds ends{control, *nic, options.patience_s};
  for (;;) {
    const nlohmann::json word = control.hear();
    if (word.contains("bye")) return 0;
    serve_job(ends, to_job(word));
  }
}

}  // namespace perf
