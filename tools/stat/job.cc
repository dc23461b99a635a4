#include "stat/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "shm/owned_file.h"
#include "stat/report.h"
#include "stat/verdict.h"
#include "telemetry/door.h"
#include "telemetry/snapshot.h"
#include "world/names.h"
#include "world/question.h"

namespace stat_program {
namespace {

namespace fs = std::filesystem;
namespace world = pullman::world;
using pullman::telemetry::Knocker;
using pullman::telemetry::printable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds(world::Age age) {
  return std::chrono::duration<double>(age).count();
}

std::uint64_t process_of(const fs::path& door) {
  const auto owner = pullman::shm::owner_of(door.filename().string());
  return owner ? static_cast<std::uint64_t>(owner->id) : 0;
}

// The doors of this host that may be asked: all, or that of a process, and then those of others
// that are of its job.
std::vector<fs::path> doors_of(const Source& source) {
  std::vector<fs::path> doors = pullman::telemetry::doors_in(source.folder);
  if (source.processes.empty()) return doors;
  const std::uint64_t first = source.processes.front();
  const std::string job = job_of(static_cast<pid_t>(first));
  std::erase_if(doors, [first, &job](const fs::path& door) {
    const std::uint64_t process = process_of(door);
    return process != first && (job.empty() || job_of(static_cast<pid_t>(process)) != job);
  });
  std::stable_partition(doors.begin(), doors.end(),
                        [first](const fs::path& door) { return process_of(door) == first; });
  return doors;
}

// What is heard at one door.
class Conversation {
 public:
  explicit Conversation(const fs::path& door) : knocker_(door) {}

  // Asks for those that have not answered.
  bool ask() {
    world::Question question{.rank = world::kNoRank, .asked = world::RankSet(job_.size)};
    for (const auto& [rank, summary] : job_.answers) question.asked.insert(rank);
    return knocker_.ask(encode(question));
  }
  bool hear(milliseconds patience) {
    const auto bytes = knocker_.hear(patience);
    const auto answer = bytes ? world::decode_answer(*bytes) : std::nullopt;
    const auto summary = answer ? world::decode_summary(answer->summary) : std::nullopt;
    if (!summary || summary->rank != answer->rank) return bytes.has_value();
    if (job_.size == 0) job_.size = summary->size;
    if (summary->size == job_.size) job_.answers.insert_or_assign(summary->rank, *summary);
    return true;
  }
  bool is_over() const { return knocker_.is_over(); }
  bool is_complete() const { return job_.size != 0 && job_.answers.size() == job_.size; }
  Job& job() { return job_; }

 private:
  Knocker knocker_;
  Job job_;
};

// Ranks that do not answer are asked again now and then: a message that went astray, or a process
// that was just connected to.
void converse(Conversation& with, steady_clock::time_point end) {
  constexpr milliseconds kAgain(500);
  constexpr milliseconds kSlice(50);
  auto again = steady_clock::now() + kAgain;
  while (!with.is_complete() && !with.is_over() && steady_clock::now() < end) {
    with.hear(kSlice);
    if (steady_clock::now() < again) continue;
    with.ask();
    again = steady_clock::now() + kAgain;
  }
}

// Asks at one door after the other until a process answers, within a part of the patience each.
// `process` is the last one asked.
std::optional<Job> ask_at_any(const std::vector<fs::path>& doors, milliseconds patience,
                              std::uint64_t& process) {
  const auto end = steady_clock::now() + patience;
  const milliseconds share =
      doors.empty() ? patience : patience / static_cast<long>(doors.size() + 1);
  for (const fs::path& door : doors) {
    process = process_of(door);
    try {
      Conversation with(door);
      if (!with.ask()) continue;
      const auto end_of_share =
          std::min(end, steady_clock::now() + std::max(share, milliseconds(500)));
      while (with.job().size == 0 && !with.is_over() && steady_clock::now() < end_of_share) {
        with.hear(milliseconds(50));
      }
      if (with.job().size == 0) continue;
      converse(with, end);
      return std::move(with.job());
    } catch (const pullman::shm::MemoryError&) {
      // It has just ended, or its program does not look at its door.
    }
  }
  return std::nullopt;
}

// Its state stands behind its name, which is in brackets and may have others in it.
bool is_stopped(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = all.rfind(") ");
  if (end == std::string::npos || end + 2 >= all.size()) return false;
  return all[end + 2] == 'T' || all[end + 2] == 't';
}

// What the counters of a process of this host say of one that does not answer.
std::string hint_of(const Shown& shown, std::uint64_t at) {
  const auto& context = shown.snapshot.table("context");
  const bool has_thread =
      !context.rows.empty() && context.number(context.rows.front(), "progress_thread") != 0;
  const double ago = age(shown.snapshot.heartbeat, at);
  std::string why = has_thread ? "its host is overloaded" : "its program makes no calls";
  if (is_stopped(shown.snapshot.process.id)) why = "it is stopped (SIGSTOP, a debugger)";
  return fmt::format("process {} of this host {} for {:.1f} s, and has {} progress thread: {}",
                     shown.snapshot.process.id,
                     shown.snapshot.asleep ? "sleeps" : "has made no progress", ago,
                     has_thread ? "a" : "no", why);
}

void add_hints(const Source& source, std::uint64_t process_asked, Job& job) {
  std::vector<std::string> problems;
  const auto all = read_all({.folder = source.folder, .processes = {}}, problems);
  const std::uint64_t at = now();
  const std::string its_job = job_of(static_cast<pid_t>(process_asked));
  std::set<std::uint64_t> answered;
  std::set<std::string> doors;
  for (const auto& [rank, summary] : job.answers) answered.insert(summary.process);
  for (const fs::path& door : pullman::telemetry::doors_in(source.folder)) {
    doors.insert(door.stem().string());
  }
  for (const Shown& shown : all) {
    const auto process = static_cast<std::uint64_t>(shown.snapshot.process.id);
    if (shown.rank.empty() || answered.contains(process)) continue;
    if (job_of(shown.snapshot.process.id) != its_job) continue;
    if (!doors.contains(shown.snapshot.path.filename().string())) continue;  // it is of no world
    for (const unsigned rank : silent_ranks(job)) {
      if (std::to_string(rank) == shown.rank) job.hints[rank] = hint_of(shown, at);
    }
  }
}

Json json_of(const Verdict& verdict) {
  Json out{{"kind", name(verdict.by)}, {"rank", verdict.rank}};
  if (verdict.by == StuckBy::kRail) {
    out["rail"] = verdict.rail;
    out["peer"] = verdict.peer == world::kNoRank ? Json() : Json(verdict.peer);
  }
  out["seconds"] = seconds(verdict.since);
  out["waiting"] = verdict.waiting;
  out["sentence"] = verdict.sentence;
  return out;
}

Json rank_or_null(std::uint32_t rank) {
  return rank == world::kNoRank ? Json() : Json(rank);
}

Json json_of(const world::Summary& summary) {
  Json out{
      {"rank", summary.rank},
      {"host", printable(summary.host)},
      {"process", summary.process},
      {"progress_thread", summary.has_thread},
      {"in_call_seconds", summary.in_call ? Json(seconds(*summary.in_call)) : Json()},
      {"program_seconds_ago", summary.program_ago ? Json(seconds(*summary.program_ago)) : Json()},
      {"call", Json()},
      {"receives_posted", summary.receives_posted},
      {"peers_waited_for", summary.peers_waited_for},
      {"waits", Json::array()},
      {"rails", Json::array()},
      {"warnings", summary.warnings},
      {"last_warning", printable(summary.warning)}};
  if (const auto& call = summary.collective) {
    out["call"] = {{"name", printable(call->name)},
                   {"waits_for_rank", rank_or_null(call->rank)},
                   {"seconds", seconds(call->since)}};
  }
  for (const auto& wait : summary.waits) {
    out["waits"].push_back({{"rank", rank_or_null(wait.rank)},
                            {"address", printable(wait.address)},
                            {"for", printable(wait.what)},
                            {"seconds", seconds(wait.since)},
                            {"heard_seconds_ago", seconds(wait.heard)}});
  }
  for (const auto& rail : summary.rails) {
    out["rails"].push_back({{"rank", rank_or_null(rail.rank)},
                            {"nic", printable(rail.nic)},
                            {"remote", printable(rail.remote)},
                            {"state", printable(rail.state)},
                            {"reason", printable(rail.reason)},
                            {"seconds", seconds(rail.since)},
                            {"rtt_seconds", seconds(rail.rtt)},
                            {"lost", rail.lost},
                            {"timeouts", rail.timeouts},
                            {"in_flight", rail.in_flight}});
  }
  return out;
}

void print_json(const Job& job, const std::vector<Verdict>& verdicts) {
  Json out{{"size", job.size},
           {"silent", silent_ranks(job)},
           {"stuck", Json::array()},
           {"ranks", Json::array()}};
  for (const Verdict& verdict : verdicts) out["stuck"].push_back(json_of(verdict));
  for (const auto& [rank, summary] : job.answers) out["ranks"].push_back(json_of(summary));
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string program_of(const world::Summary& summary) {
  if (summary.in_call) return fmt::format("in a call {:.1f} s", seconds(*summary.in_call));
  if (!summary.has_thread) return "calls";
  if (!summary.program_ago) return "no call yet";
  return fmt::format("called {:.1f} s ago", seconds(*summary.program_ago));
}

std::string waits_of(const world::Summary& summary) {
  std::string out;
  if (const auto& call = summary.collective) {
    out = fmt::format("{}{} {:.1f} s", printable(call->name),
                      call->rank == world::kNoRank ? "" : " of " + world::name_of(call->rank),
                      seconds(call->since));
  }
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, summary.waits.size()); ++i) {
    const auto& wait = summary.waits[i];
    out += fmt::format(
        "{}{}: {} {:.1f} s", out.empty() ? "" : "; ",
        wait.rank == world::kNoRank ? printable(wait.address) : world::name_of(wait.rank),
        printable(wait.what), seconds(wait.since));
  }
  if (summary.waits.size() > kShown) out += fmt::format("; {} more", summary.waits.size() - kShown);
  return out.empty() ? "-" : out;
}

void print_table(const Job& job, const std::vector<Verdict>& verdicts) {
  fmt::print("{} of {} ranks answer: {}\n", job.answers.size(), job.size,
             verdicts.empty() ? "nothing has stood still for longer than 1 s" : "this is stuck");
  for (const Verdict& verdict : verdicts) fmt::print("  {}\n", verdict.sentence);
  fmt::print("\n{:>6}  {:<20}{:>9}  {:<8}{:<20}{:>9}  waits for\n", "rank", "host", "process",
             "thread", "program", "warnings");
  for (const auto& [rank, summary] : job.answers) {
    fmt::print("{:>6}  {:<20}{:>9}  {:<8}{:<20}{:>9}  {}\n", rank, printable(summary.host),
               summary.process, summary.has_thread ? "yes" : "no", program_of(summary),
               summary.warnings, waits_of(summary));
  }
}

// Nobody answers: what the counters of this host's processes show is all there is.
int tell_of_nobody(const JobOptions& options, const std::vector<fs::path>& doors) {
  if (options.json) print_json({}, {});
  if (doors.empty()) {
    fmt::print(stderr,
               "no process of a World shows itself in {}: none runs here, or PULLMAN_COUNTERS is 0 "
               "or names another folder (--folder)\n",
               options.source.folder.string());
    return 1;
  }
  fmt::print(stderr,
             "no process of a job answers on this host: their programs make no calls and have no "
             "progress thread (PULLMAN_PROGRESS=thread), or are stopped. Their counters show:\n");
  std::vector<std::string> problems;
  Source source{.folder = options.source.folder, .processes = {}};
  for (const fs::path& door : doors) source.processes.push_back(process_of(door));
  for (const Shown& shown : read_all(source, problems)) {
    fmt::print(stderr, "  {}\n", summary(shown, now()));
  }
  for (const std::string& problem : problems) fmt::print(stderr, "{}\n", problem);
  return 1;
}

// Processes of this host that may belong to other jobs.
void tell_of_others(const std::vector<fs::path>& doors, const Job& job) {
  std::set<std::uint64_t> known;
  for (const auto& [rank, summary] : job.answers) known.insert(summary.process);
  std::vector<std::uint64_t> others;
  for (const fs::path& door : doors) {
    if (!known.contains(process_of(door))) others.push_back(process_of(door));
  }
  if (others.empty() || !job.hints.empty()) return;
  fmt::print(stderr, "other jobs on this host, or ranks that do not answer: --job {}\n",
             fmt::join(others, ", "));
}

}  // namespace

int show_job(const JobOptions& options) {
  const std::vector<fs::path> doors = doors_of(options.source);
  std::uint64_t asked = 0;
  std::optional<Job> job = ask_at_any(doors, options.patience, asked);
  if (!job) return tell_of_nobody(options, doors);
  add_hints(options.source, asked, *job);
  const std::vector<Verdict> verdicts = find_stuck(*job);
  if (options.json) {
    print_json(*job, verdicts);
  } else {
    print_table(*job, verdicts);
    tell_of_others(doors, *job);
  }
  return 0;
}

}  // namespace stat_program
