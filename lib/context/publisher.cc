#include "context/publisher.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "base/log_memory.h"
#include "context/clock.h"

namespace pullman {
namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);
// Before a sleep, so that who looks at a process that sleeps sees what it did last.
constexpr Duration kLeastInterval = std::chrono::milliseconds(5);
// Addresses are written anew every so many times.
constexpr unsigned kAnew = 50;
// At most this part of the time is spent on it.
constexpr int kPart = 100;

std::string_view name(Config::Security security) {
  switch (security) {
    case Config::Security::kDefault:
      break;
    case Config::Security::kAuthenticate:
      return "authenticated";
    case Config::Security::kEncrypt:
      return "encrypted";
    case Config::Security::kOff:
      return "unprotected";
  }
  return "";
}

}  // namespace

Publisher::Publisher(const Config& config, std::string_view driver) {
  telemetry::ContextRow& context = rows_.context;
  context.process = static_cast<std::uint64_t>(getpid());
  context.driver = {driver};
  context.security = {name(config.security)};
  context.progress_thread = config.progress == Config::Progress::kThread;
  context.begun = telemetry::clock_count(read_clock());
  if (config.counters == "0") return;
  try {
    file_.emplace(config.counters.empty() ? telemetry::default_folder()
                                          : std::filesystem::path(config.counters));
  } catch (const shm::MemoryError& error) {
    // Who has named a folder expects to see something there.
    log().log(config.counters.empty() ? spdlog::level::info : spdlog::level::warn,
              "what this process does is not shown to others (PULLMAN_COUNTERS): {}", error.what());
  }
}

const telemetry::Rows& Publisher::look(Instant now, const engine::Collector& collector) {
  collector.collect(now, times_++ % kAnew == 0, rows_);
  list_warnings();
  history_.complete(now, rows_);
  return rows_;
}

void Publisher::publish(Instant now, const engine::Collector& collector) {
  const Instant begin = read_clock();
  try {
    file_->write(now, look(now, collector));
  } catch (const std::bad_alloc&) {
    // The turn has been made, and its call must not fail: what was written last stays.
  }
  const Instant end = read_clock();
  const Duration rest = kPart * (end - begin);
  due_ = end + std::max(kInterval, rest);
  due_before_sleep_ = end + std::max(kLeastInterval, rest);
}

void Publisher::list_warnings() {
  rows_.errors.clear();
  for (const LogMemory::Entry& entry : log_memory().entries()) {
    rows_.errors.push_back({.kind = {entry.kind},
                            .times = entry.times,
                            .first = telemetry::clock_count(entry.first),
                            .last = telemetry::clock_count(entry.last),
                            .text = {entry.text}});
  }
}

}  // namespace pullman
