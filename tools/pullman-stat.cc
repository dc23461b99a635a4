// pullman-stat: what the contexts on this host do, by the counters that they show.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "stat/grid.h"
#include "stat/job.h"
#include "stat/live.h"
#include "stat/report.h"
#include "stat/source.h"

namespace {

using std::chrono::milliseconds;

struct Options {
  stat_program::Source source;
  std::string folder;
  bool once = false;
  std::string format = "table";
  std::vector<std::string> tables;
  std::vector<std::string> columns;
  std::string prometheus;
  unsigned interval_ms = 1000;
  bool job = false;
  std::vector<std::uint64_t> job_processes;
  double patience_s = 5;
};

int print_tables(const Options& options) {
  std::vector<std::string> problems;
  const auto all = stat_program::read_all(options.source, problems);
  const std::uint64_t at = stat_program::now();
  for (const std::string& problem : problems) fmt::print(stderr, "{}\n", problem);
  if (all.empty() && !options.source.processes.empty()) {
    fmt::print(
        stderr,
        "none of the processes asked for shows its counters in {}: without --process all are "
        "shown that do\n",
        options.source.folder.string());
    return 1;
  }
  if (all.empty()) {
    fmt::print(stderr,
               "no context shows its counters in {}: none runs here, or PULLMAN_COUNTERS is 0 or "
               "names another folder (--folder)\n",
               options.source.folder.string());
    return 1;
  }
  for (const std::string& wanted : options.tables) {
    const auto names = stat_program::table_names(all);
    if (std::find(names.begin(), names.end(), wanted) != names.end()) continue;
    fmt::print(stderr, "there is no table '{}', but {}\n", wanted, fmt::join(names, ", "));
    return 1;
  }
  for (const auto& shown : all) {
    fmt::print("{}\n", stat_program::summary(shown, at));
    for (const std::string& sentence : pullman::telemetry::wrong_sums(shown.snapshot)) {
      fmt::print("  a sum does not hold: {}\n", sentence);
    }
    for (const auto& table : shown.snapshot.tables) {
      const bool wanted = options.tables.empty() ||
                          std::find(options.tables.begin(), options.tables.end(), table.name) !=
                              options.tables.end();
      if (!wanted || (table.rows.empty() && options.tables.empty())) continue;
      fmt::print("[{}]\n", table.name);
      for (const std::string& line : stat_program::lines_of(table, options.columns, at)) {
        fmt::print("  {}\n", line);
      }
      if (table.left_out != 0)
        fmt::print("  and {} more, for which there was no room\n", table.left_out);
    }
  }
  return 0;
}

int print_json(const Options& options) {
  std::vector<std::string> problems;
  const auto all = stat_program::read_all(options.source, problems);
  fmt::print("{}", stat_program::to_json(all, problems, stat_program::now()));
  return all.empty() ? 1 : 0;
}

// A node exporter may read at any time, so the file is replaced as a whole.
bool write_prometheus(const Options& options) {
  std::vector<std::string> problems;
  const auto all = stat_program::read_all(options.source, problems);
  for (const std::string& problem : problems) fmt::print(stderr, "{}\n", problem);
  const std::string beside = options.prometheus + ".new";
  std::remove(beside.c_str());  // it may be a link to a file of somebody else
  {
    std::ofstream file(beside, std::ios::trunc);
    file << stat_program::to_prometheus(all, stat_program::now());
    if (!file.flush()) {
      fmt::print(stderr, "{} cannot be written: {}\n", beside, std::strerror(errno));
      std::remove(beside.c_str());
      return false;
    }
  }
  if (std::rename(beside.c_str(), options.prometheus.c_str()) == 0) return true;
  fmt::print(stderr, "{} cannot be written: {}\n", options.prometheus, std::strerror(errno));
  return false;
}

int export_for_prometheus(const Options& options) {
  while (write_prometheus(options)) {
    if (options.once) return 0;
    std::this_thread::sleep_for(milliseconds(options.interval_ms));
  }
  return 1;
}

int ask_job(const Options& options) {
  const auto patience = std::chrono::duration<double>(options.patience_s);
  stat_program::JobOptions job{.source = options.source};
  job.source.processes = options.job_processes;
  std::erase(job.source.processes, 0);  // how the option's parser says that no process is named
  job.patience = std::chrono::ceil<milliseconds>(patience);
  job.json = options.format == "json";
  return stat_program::show_job(job);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Shows what the contexts on this host do, by the counters that they show "
      "(PULLMAN_COUNTERS). Without an option: a live view.",
      "pullman-stat"};
  Options options;
  app.add_flag("--once", options.once, "Print everything once, and exit");
  app.add_option("--format", options.format, "table or json; json implies --once")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--table", options.tables,
                 "With --once: only these tables: context, nic, channel, peer, rail, error");
  app.add_option("--column", options.columns, "With --once: only these columns");
  app.add_option("--process", options.source.processes, "Only these processes, by their ids");
  app.add_option("--folder", options.folder,
                 "Where contexts show their counters; else as PULLMAN_COUNTERS says");
  app.add_option(
      "--prometheus", options.prometheus,
      "Write this file for the text-file collector of a node exporter, at every interval");
  app.add_option("--interval", options.interval_ms, "Milliseconds between two readings (1000)")
      ->check(CLI::Range(100, 3600000));
  CLI::Option* const job =
      app.add_option("--job", options.job_processes,
                     "Ask all processes of a job, by one of this host, what is stuck: which rank, "
                     "rail or program, and since when")
          ->expected(0, 1);
  app.add_option("--patience", options.patience_s, "With --job: wait for answers so long, s (5)")
      ->check(CLI::Range(0.1, 3600.0))
      ->check([](const std::string& text) {
        return text.find_first_of("nN") == std::string::npos ? std::string() : "is no number";
      });
  CLI11_PARSE(app, argc, argv);
  options.job = job->count() != 0;
  options.source.folder =
      options.folder.empty() ? stat_program::usual_folder() : std::filesystem::path(options.folder);
  if (options.job) return ask_job(options);
  if (options.format == "json") return print_json(options);
  if (!options.prometheus.empty()) return export_for_prometheus(options);
  if (options.once) return print_tables(options);
  if (isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 &&
      stat_program::show_live(options.source, milliseconds(options.interval_ms))) {
    return 0;
  }
  fmt::print(stderr, "this is no terminal that can show a live view (TERM): use --once\n");
  return 1;
}
