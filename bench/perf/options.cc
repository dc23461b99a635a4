#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <charconv>
#include <map>

namespace perf {

namespace {

constexpr std::array<const char*, 4> kTestNames = {"latency", "bandwidth", "bidirectional", "rate"};

const std::map<std::string, Test>& tests() {
  static const std::map<std::string, Test> names = {{"latency", Test::kLatency},
                                                    {"bandwidth", Test::kBandwidth},
                                                    {"bidirectional", Test::kBidirectional},
                                                    {"rate", Test::kRate}};
  return names;
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

}  // namespace

const char* name(Test test) {
  return kTestNames[static_cast<std::size_t>(test)];
}

Test test_named(std::string_view text) {
  const auto found = tests().find(std::string(text));
  if (found == tests().end()) throw Failure(fmt::format("there is no test '{}'", text));
  return found->second;
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
  std::string size = "64";
  const std::map<std::string, Format> formats = {
      {"table", Format::kTable}, {"json", Format::kJson}, {"csv", Format::kCsv}};
  app.add_option("HOST", options.host, "the machine that serves; leave out to serve");
  app.add_option("--test", options.test, "latency, bandwidth, bidirectional or rate (latency)")
      ->transform(CLI::Transformer(tests(), CLI::ignore_case));
  app.add_option("--size", size, "bytes of a message: N, or A..B doubling; suffixes K, M (64)");
  auto* iterations = app.add_option("--iterations", options.iterations,
                                    "messages per size (round trips in latency)")
                         ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  app.add_option("--duration", options.duration_s, "seconds per size (1)")
      ->check(CLI::Range(0.001, 86400.0))
      ->excludes(iterations);
  app.add_option("--window", options.window, "messages outstanding (64)")
      ->check(CLI::Range(std::size_t{1}, kMaxWindow));
  app.add_option("--driver", options.driver, "udp, fabric or auto (PULLMAN_DRIVER, else auto)");
  app.add_option("--nic", options.nics, "interfaces or addresses to use, comma-separated")
      ->delimiter(',');
  app.add_option("--port", options.port, "port of the server (PULLMAN_PORT, else 7100)")
      ->check(CLI::Range(1, 65535));
  app.add_flag("--check", options.check, "fill and verify every byte");
  app.add_flag("--raw", options.raw, "the same on bare datagrams; say it at both ends");
  app.add_option("--format", options.format, "table, json or csv (table)")
      ->transform(CLI::Transformer(formats, CLI::ignore_case));
  app.add_option("--patience", options.patience_s, "give up after so many silent seconds (60)")
      ->check(CLI::Range(0.1, 86400.0));
  try {
    app.parse(argc, argv);
    options.sizes = parse_sizes(size);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

}  // namespace perf
