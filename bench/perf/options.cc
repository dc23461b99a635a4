#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace perf {

namespace {

// In the order of their enumerators.
constexpr std::array<const char*, 5> kTestNames = {"latency", "bandwidth", "bidirectional", "rate",
                                                   "failover"};
constexpr std::array<const char*, 3> kFormatNames = {"table", "json", "csv"};

// One of the names, in any case. CLI11's transformers take an enumerator's number too, and any.
template <std::size_t N>
CLI::Validator one_of(const std::array<const char*, N>& names) {
  return CLI::IsMember(std::vector<std::string>(names.begin(), names.end()), CLI::ignore_case);
}

template <std::size_t N>
std::optional<std::size_t> index_of(const std::array<const char*, N>& names,
                                    std::string_view text) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

// CLI::Range lets NaN pass: no comparison with it is true.
CLI::Validator seconds(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
    return fmt::format("'{}' is not in the range of {} to {} seconds", text, least, most);
  };
  return {check, ""};
}

std::size_t parse_size(std::string_view text) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  std::size_t unit = 0;
  if (suffix.empty()) unit = 1;
  if (suffix == "K" || suffix == "k") unit = 1024;
  if (suffix == "M" || suffix == "m") unit = 1024 * 1024;
  if (error != std::errc{} || unit == 0 || value > kMaxMessageBytes / unit) {
    throw Failure(
        fmt::format("'{}' is not a size: write 0 to 1024M, like 64, 4K, 1M or 1..4M", text));
  }
  return value * unit;
}

// "HOST:PORT" and "[V6]:PORT", as a server prints them; anything else is a host alone. Nothing: a
// port that is none.
struct Place {
  std::string host;
  std::uint16_t port = 0;  // 0: none was said
};
std::optional<Place> parse_place(const std::string& text) {
  if (text.rfind("hex:", 0) == 0) return Place{.host = text};
  const bool bracketed = text.front() == '[';
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && colon != 0 &&
                        (bracketed ? text[colon - 1] == ']' : text.find(':') == colon);
  const std::string host = has_port ? text.substr(0, colon) : text;
  Place place{.host = bracketed && host.back() == ']' ? host.substr(1, host.size() - 2) : host};
  if (!has_port) return place;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, place.port);
  if (error != std::errc{} || rest != end || place.port == 0) return std::nullopt;
  return place;
}

void take_place(Options& options) {
  if (options.host.empty()) return;
  const auto place = parse_place(options.host);
  if (!place) throw Failure(fmt::format("'{}' names no port: 1 to 65535", options.host));
  if (place->port != 0 && options.port != 0 && place->port != options.port) {
    throw Failure(
        fmt::format("'{}' and --port {} contradict each other", options.host, options.port));
  }
  options.host = place->host;
  if (place->port != 0) options.port = place->port;
}

// --test failover, all but --rails.
void add_failover_options(CLI::App& app, Options& options, CLI::Option* raw) {
  app.add_flag("--rails", options.rails, "say at the end what became of the rails")->excludes(raw);
  app.add_option("--cut", options.cuts,
                 "failover: NIC[:KIND]@SECOND[-SECOND], comma-separated: take our NIC down, and up "
                 "again; KIND silent, deaf (receives nothing) or mute: nobody is told. Needs root")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(raw);
  app.add_option("--output", options.output, "failover: write goodput to PREFIX.csv, PREFIX.svg")
      ->excludes(raw);
  app.add_option_function<std::uint32_t>(
         "--watch",
         [&options](const std::uint32_t& ms) {
           options.watch_every = std::chrono::milliseconds(ms);
         },
         "failover: the rails as a JSON line every so many ms")
      ->check(CLI::Range(1, 10000))
      ->excludes(raw);
}

}  // namespace

const char* name(Test test) {
  return kTestNames[static_cast<std::size_t>(test)];
}

Test test_named(std::string_view text) {
  const auto index = index_of(kTestNames, text);
  if (!index) throw Failure(fmt::format("there is no test '{}'", text));
  return static_cast<Test>(*index);
}

std::vector<std::size_t> parse_sizes(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return {parse_size(text)};

  const std::size_t first = parse_size(text.substr(0, dots));
  const std::size_t last = parse_size(text.substr(dots + 2));
  if (first > last) throw Failure(fmt::format("'{}' runs backwards: the smaller size first", text));
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last; size = size == 0 ? 1 : size * 2)
    sizes.push_back(size);
  return sizes;
}

bool parse_command_line(int argc, char** argv, Options& options, int& exit_code) {
  CLI::App app(
      "Measures messages between two processes. Without HOST: serves one client and exits.\n"
      "With HOST (a name or address of the machine that serves): runs the test and reports.");
  std::string size;
  std::string test = name(options.test);
  std::string format = kFormatNames.front();
  app.add_option("HOST", options.host, "the machine that serves, or HOST:PORT; leave out to serve")
      ->check([](const std::string& host) {
        return std::string(host.empty() ? "it is empty: name a machine, or leave it out to serve"
                                        : "");
      });
  app.add_option("--test", test, "latency, bandwidth, bidirectional, rate or failover (latency)")
      ->check(one_of(kTestNames));
  app.add_option("--size", size,
                 "bytes of a message: N, or A..B doubling; suffixes K, M (64; failover: 1M)");
  auto* iterations = app.add_option("--iterations", options.iterations,
                                    "messages per size (round trips in latency)")
                         ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  app.add_option("--duration", options.duration_s, "seconds per size (1)")
      ->check(seconds(0.001, 86400))
      ->excludes(iterations);
  auto* window = app.add_option("--window", options.window,
                                "messages outstanding (64; both ways at once no more than 16 MiB)")
                     ->check(CLI::Range(std::size_t{1}, kMaxWindow));
  app.add_option("--driver", options.driver,
                 "udp, tcp, fabric or auto (PULLMAN_DRIVER, else auto)");
  app.add_option("--nic", options.nics, "interfaces or addresses to use, comma-separated")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--port", options.port,
                 "port of the server (PULLMAN_PORT, where 0 is any free one, else 7100)")
      ->check(CLI::Range(1, 65535));
  app.add_flag("--check", options.check, "fill and verify every byte");
  auto* raw = app.add_flag("--raw", options.raw, "the same on bare datagrams; say it at both ends");
  options.keys.add_to(app, raw);
  std::uint32_t sleep_us = 0;
  app.add_option("--sleep", sleep_us,
                 "sleep after so many idle us (PULLMAN_SLEEP_AFTER_US, else never)")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(raw);
  add_failover_options(app, options, raw);
  app.add_option("--format", format, "table, json or csv (table)")->check(one_of(kFormatNames));
  app.add_option("--patience", options.patience_s, "give up after so many silent seconds (60)")
      ->check(seconds(0.1, 86400));
  try {
    app.parse(argc, argv);
    options.window_given = window->count() != 0;
    take_place(options);
    options.sleep_after = std::chrono::microseconds(sleep_us);
    options.test = test_named(test);
    if (size.empty()) size = options.test == Test::kFailover ? "1M" : "64";
    options.sizes = parse_sizes(size);
    if (options.raw && options.test == Test::kFailover) {
      throw Failure("bare datagrams have nothing to fail over to: no --raw with --test failover");
    }
    if (options.test != Test::kFailover &&
        (!options.cuts.empty() || !options.output.empty() || options.watch_every.count() != 0)) {
      throw Failure("--cut, --output and --watch are for --test failover");
    }
    options.format = static_cast<Format>(*index_of(kFormatNames, format));
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  } catch (const Failure& error) {
    fmt::print(stderr, "pullman-perf: {}\n", error.what());
    exit_code = 2;
    return false;
  }
  return true;
}

}  // namespace perf
