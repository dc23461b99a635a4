#include "report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace perf {

namespace {

double seconds(std::chrono::nanoseconds elapsed) {
  return std::max(1e-9, static_cast<double>(elapsed.count()) / 1e9);
}

double per_second(const Outcome& outcome) {
  return outcome.messages == 0 ? 0
                               : static_cast<double>(outcome.messages) / seconds(outcome.elapsed);
}

double megabytes_per_second(const Outcome& outcome, std::size_t size) {
  return per_second(outcome) * static_cast<double>(size) / 1e6;
}

double rounded(double value) {
  return std::round(value * 1000) / 1000;
}

std::string size_text(std::size_t size) {
  if (size >= 1024 * 1024 && size % (1024 * 1024) == 0) return fmt::format("{} MiB", size >> 20);
  if (size >= 1024 && size % 1024 == 0) return fmt::format("{} KiB", size >> 10);
  return fmt::format("{} B", size);
}

// What failover has more, as far as it is one number.
constexpr std::array<const char*, 8> kFailoverColumns = {
    "longest_gap_ms", "reinstated_ms", "never_reinstated", "lost",
    "duplicated",     "misordered",    "corrupted",        "sent_twice"};

}  // namespace

void put_line(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fputc('\n', stdout);
  if (std::fflush(stdout) != 0) {
    throw Failure(fmt::format("cannot write the results: {}", std::strerror(errno)));
  }
}

void Samples::add(std::chrono::nanoseconds half_round_trip) {
  const auto ns = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      half_round_trip.count(), 0, std::numeric_limits<std::uint32_t>::max()));
  max_ns_ = std::max(max_ns_, ns);
  if (kept_.size() < kMaxKept) kept_.push_back(ns);
}

double Samples::percentile_us(double fraction) {
  if (kept_.empty()) return 0;
  const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(kept_.size() - 1));
  const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(kept_.begin(), at, kept_.end());
  return static_cast<double>(*at) / 1e3;
}

Report::Report(const Options& options, std::string driver)
    : test_(options.test),
      format_(options.format),
      raw_(options.raw),
      driver_(std::move(driver)),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_progress_(Clock::now() + std::chrono::seconds(1)) {
  if (format_ == Format::kTable) {
    put_line(fmt::format("{} over {}{}", name(test_), driver_, raw_ ? ", bare datagrams" : ""));
    std::string head = fmt::format("{:>10} {:>10}", "size", "messages");
    if (test_ == Test::kLatency) {
      head += fmt::format(" {:>9} {:>9} {:>9} {:>9}", "p50 us", "p90 us", "p99 us", "max us");
    }
    put_line(head + fmt::format(" {:>10} {:>11} {:>8} {:>8} {:>7}", "MB/s", "messages/s", "retrans",
                                "spurious", raw_ ? "lost" : "errors"));
  }
  if (format_ == Format::kCsv) {
    std::string head =
        "test,driver,raw,size,messages,p50_us,p90_us,p99_us,max_us,mb_per_s,messages_per_s,"
        "retransmits,spurious_retransmits,errors,send_errors,receive_overflows,bursts_sent,"
        "bursts_received,bursts_refused";
    if (test_ == Test::kFailover) {
      for (const char* column : kFailoverColumns) head += fmt::format(",{}", column);
    }
    put_line(head);
  }
}

void Report::progress(std::size_t size, std::uint64_t messages, Clock::time_point now) {
  if (!terminal_ || now < next_progress_) return;
  next_progress_ = now + std::chrono::milliseconds(500);
  fmt::print(stderr, "\r{:>10} {:>10} so far ...", size_text(size), messages);
  std::fflush(stderr);
  progress_shown_ = true;
}

void Report::erase_progress() {
  next_progress_ = Clock::now() + std::chrono::seconds(1);
  if (!progress_shown_) return;
  std::fputs("\r\033[K", stderr);
  progress_shown_ = false;
}

void Report::row(std::size_t size, Outcome& outcome) {
  erase_progress();
  switch (format_) {
    case Format::kTable:
      return table_row(size, outcome);
    case Format::kJson:
      return json_row(size, outcome);
    case Format::kCsv:
      return csv_row(size, outcome);
  }
}

void Report::table_row(std::size_t size, Outcome& outcome) {
  std::string line = fmt::format("{:>10} {:>10}", size_text(size), outcome.messages);
  if (test_ == Test::kLatency) {
    Samples& samples = outcome.half_round_trips;
    line += fmt::format(" {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}", samples.percentile_us(0.5),
                        samples.percentile_us(0.9), samples.percentile_us(0.99), samples.max_us());
  }
  put_line(line + fmt::format(" {:>10.2f} {:>11.0f} {:>8} {:>8} {:>7}",
                              megabytes_per_second(outcome, size), per_second(outcome),
                              outcome.retransmits, outcome.spurious_retransmits, outcome.errors));
  if (!outcome.text.empty()) put_line(outcome.text);
}

void Report::json_row(std::size_t size, Outcome& outcome) {
  nlohmann::ordered_json object;
  Samples& samples = outcome.half_round_trips;
  object["test"] = name(test_);
  object["driver"] = driver_;
  object["raw"] = raw_;
  object["size"] = size;
  object["messages"] = outcome.messages;
  for (const char* key : {"p50_us", "p90_us", "p99_us", "max_us"}) object[key] = nullptr;
  if (!samples.empty()) {
    object["p50_us"] = rounded(samples.percentile_us(0.5));
    object["p90_us"] = rounded(samples.percentile_us(0.9));
    object["p99_us"] = rounded(samples.percentile_us(0.99));
    object["max_us"] = rounded(samples.max_us());
  }
  object["mb_per_s"] = rounded(megabytes_per_second(outcome, size));
  object["messages_per_s"] = rounded(per_second(outcome));
  object["retransmits"] = outcome.retransmits;
  object["spurious_retransmits"] = outcome.spurious_retransmits;
  object["errors"] = outcome.errors;
  for (const auto& [name, count] : kNicCounts) {
    object[name] = raw_ ? nlohmann::ordered_json() : nlohmann::ordered_json(outcome.nic.*count);
  }
  for (const auto& [key, value] : outcome.more.items()) object[key] = value;
  put_line(object.dump());
}

void Report::csv_row(std::size_t size, Outcome& outcome) {
  std::string line =
      fmt::format("{},{},{},{},{}", name(test_), driver_, raw_, size, outcome.messages);
  Samples& samples = outcome.half_round_trips;
  line += samples.empty() ? std::string(",,,,")
                          : fmt::format(",{:.3f},{:.3f},{:.3f},{:.3f}", samples.percentile_us(0.5),
                                        samples.percentile_us(0.9), samples.percentile_us(0.99),
                                        samples.max_us());
  line += fmt::format(",{:.3f},{:.3f},{},{},{}", megabytes_per_second(outcome, size),
                      per_second(outcome), outcome.retransmits, outcome.spurious_retransmits,
                      outcome.errors);
  for (const auto& [name, count] : kNicCounts) {
    line += raw_ ? "," : fmt::format(",{}", outcome.nic.*count);
  }
  if (test_ == Test::kFailover) {
    for (const char* column : kFailoverColumns) {
      const auto& value = outcome.more.at(column);
      line += value.is_null() ? "," : fmt::format(",{}", value.dump());
    }
  }
  put_line(line);
}

}  // namespace perf
