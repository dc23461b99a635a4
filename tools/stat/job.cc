#include "stat/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shm/owned_file.h"
#include "stat/inquiry.h"
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
  // Throws shm::MemoryError if nobody is there.
  explicit Conversation(const fs::path& door) : knocker_(door), process_(process_of(door)) {}

  void ask_if_due() {
    auto asked = inquiry_.next_question(steady_clock::now());
    if (!asked) return;
    knocker_.ask(encode(world::Question{.rank = world::kNoRank, .asked = std::move(*asked)}));
  }
  void hear(milliseconds patience) {
    const auto bytes = knocker_.hear(patience);
    const auto answer = bytes ? world::decode_answer(*bytes) : std::nullopt;
    const auto summary = answer ? world::decode_summary(answer->summary) : std::nullopt;
    if (!summary || summary->rank != answer->rank) return;
    inquiry_.note_answer(*summary, steady_clock::now());
  }
  // Until all is known, or no more comes.
  void go_on_until(steady_clock::time_point end) {
    constexpr milliseconds kSlice(50);
    while (!inquiry_.is_over() && !is_over() && steady_clock::now() < end) {
      ask_if_due();
      hear(kSlice);
    }
  }
  bool is_over() const { return knocker_.is_over(); }
  Inquiry& inquiry() { return inquiry_; }
  std::uint64_t process() const { return process_; }

 private:
  Knocker knocker_;
  const std::uint64_t process_;
  Inquiry inquiry_;
};

// Knocks at doors until a process answers at one. Each that is asked asks the whole job, so the
// first has a moment for itself; but of those that do not answer there may be many, so each time
// twice as many are asked, and all are heard until the end.
class Doors {
 public:
  explicit Doors(const std::vector<fs::path>& doors) : left_(doors) {}

  // Returns the first that answers.
  Conversation* find_until(steady_clock::time_point end) {
    constexpr milliseconds kMoment(50);
    constexpr milliseconds kNap(2);
    auto more_at = steady_clock::now();
    for (auto now = more_at; now < end; now = steady_clock::now()) {
      if (now >= more_at || open_.empty()) {
        knock_at_more();
        more_at = now + kMoment;
      }
      for (Conversation& one : open_) {
        one.hear(milliseconds(0));
        if (one.inquiry().has_begun()) return &one;
      }
      open_.remove_if([](const Conversation& one) { return one.is_over(); });
      if (open_.empty() && left_.empty()) return nullptr;
      std::this_thread::sleep_for(kNap);
    }
    return nullptr;
  }

 private:
  void knock_at_more() {
    const auto count = std::min(left_.size(), at_once_);
    for (const fs::path& door : left_.first(count)) {
      try {
        open_.emplace_back(door).ask_if_due();
      } catch (const pullman::shm::MemoryError&) {
        // It has just ended, or its program does not look at its door.
      }
    }
    left_ = left_.subspan(count);
    at_once_ *= 2;
  }

  std::span<const fs::path> left_;  // nobody has knocked at them
  std::size_t at_once_ = 1;
  std::list<Conversation> open_;
};

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

void print_json(const Job& job, const std::vector<Verdict>& verdicts, bool is_settled) {
  Json out{{"size", job.size},      {"silent", silent_ranks(job)}, {"ended", ended_ranks(job)},
           {"settled", is_settled}, {"stuck", Json::array()},      {"ranks", Json::array()}};
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

void print_table(const Job& job, const std::vector<Verdict>& verdicts, bool is_settled) {
  const char* what = "this is stuck";
  if (verdicts.empty()) {
    what = is_settled ? "nothing has stood still for longer than 1 s"
                      : "whether anything stands still is not known yet: it takes a --patience of "
                        "some seconds";
  }
  fmt::print("{} of {} ranks answer: {}\n", job.answers.size(), job.size, what);
  for (const Verdict& verdict : verdicts) fmt::print("  {}\n", verdict.sentence);
  if (const auto ended = ended_ranks(job); !ended.empty()) {
    fmt::print("  {} closed {} connections\n",
               world::names_of(ended) + (ended.size() == 1 ? " has" : " have"),
               ended.size() == 1 ? "its" : "their");
  }
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
  if (options.json) print_json({}, {}, false);
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
  const auto end = steady_clock::now() + options.patience;
  Doors all(doors);
  Conversation* const with = all.find_until(end);
  if (with == nullptr) return tell_of_nobody(options, doors);
  with->go_on_until(end);
  Job& job = with->inquiry().job();
  add_hints(options.source, with->process(), job);
  const std::vector<Verdict> verdicts = find_stuck(job);
  const bool is_settled = with->inquiry().is_settled();
  if (options.json) {
    print_json(job, verdicts, is_settled);
  } else {
    print_table(job, verdicts, is_settled);
    tell_of_others(doors, job);
  }
  return 0;
}

}  // namespace stat_program
