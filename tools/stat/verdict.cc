#include "stat/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>

#include "telemetry/rows.h"
#include "telemetry/snapshot.h"
#include "world/names.h"

namespace stat_program {
namespace {

using pullman::telemetry::printable;
using pullman::world::Age;
using pullman::world::kGone;
using pullman::world::kNoRank;
using pullman::world::kWaitsForMessage;
using pullman::world::name_of;
using pullman::world::names_of;
using pullman::world::RailSummary;
using pullman::world::Summary;
using pullman::world::WaitedFor;

// What goes on comes within less.
constexpr Age kStuckAfter = std::chrono::seconds(1);

double in_seconds(Age age) {
  return std::chrono::duration<double>(age).count();
}

// One rank waits for another.
struct Edge {
  unsigned from = 0;
  unsigned to = 0;
  std::string what;
  Age since{};
};

// The program makes no calls, and does not wait in one.
bool hangs(const Summary& summary) {
  return summary.has_thread && !summary.in_call &&
         (!summary.program_ago || *summary.program_ago >= kStuckAfter);
}

// A program that does not call cannot receive: its receives are not what it waits for.
bool counts(const Summary& summary, const WaitedFor& wait) {
  if (wait.since < kStuckAfter || wait.rank == kNoRank || wait.what.starts_with(kGone))
    return false;
  return wait.what != kWaitsForMessage || !hangs(summary);
}

std::vector<Edge> edges_of(const Job& job) {
  std::vector<Edge> out;
  for (const auto& [rank, summary] : job.answers) {
    if (const auto& call = summary.collective;
        call && call->since >= kStuckAfter && call->rank < job.size && !hangs(summary)) {
      out.push_back(
          {rank, call->rank, fmt::format("its part of a {}", printable(call->name)), call->since});
    }
    for (const WaitedFor& wait : summary.waits) {
      if (counts(summary, wait) && wait.rank < job.size && wait.rank != rank) {
        out.push_back({rank, wait.rank, printable(wait.what), wait.since});
      }
    }
  }
  return out;
}

// Those who wait for a rank, for what, and since when.
struct Waiting {
  std::vector<unsigned> ranks;
  std::set<std::string> what;
  Age since{};

  Waiting(const std::vector<Edge>& edges, unsigned rank) {
    for (const Edge& edge : edges) {
      if (edge.to != rank) continue;
      if (ranks.empty() || ranks.back() != edge.from) ranks.push_back(edge.from);
      what.insert(edge.what);
      since = std::max(since, edge.since);
    }
  }
  std::string sentence() const {
    if (ranks.empty()) return "no other rank waits for it";
    return fmt::format("{} {} for {}, for {:.1f} s", names_of(ranks),
                       ranks.size() == 1 ? "waits" : "wait", fmt::join(what, " and "),
                       in_seconds(since));
  }
};

std::optional<std::string> how_it_is_gone(const Job& job, unsigned rank) {
  for (const auto& [other, summary] : job.answers) {
    for (const WaitedFor& wait : summary.waits) {
      if (wait.rank == rank && wait.what.starts_with(kGone)) {
        return printable(wait.what.substr(kGone.size()));
      }
    }
  }
  return std::nullopt;
}

Verdict judge_silent(const Job& job, unsigned rank, const std::vector<Edge>& edges) {
  Waiting waiting(edges, rank);
  Verdict out{.rank = rank, .since = waiting.since, .waiting = waiting.ranks};
  const auto hint = job.hints.find(rank);
  std::string why = hint != job.hints.end()
                        ? hint->second
                        : "its program makes no calls and has no progress thread, or is stopped; "
                          "or it is gone, or no rank that answers is connected to it";
  if (const auto gone = how_it_is_gone(job, rank)) {
    out.by = StuckBy::kGone;
    why = "others say that it is gone: " + *gone;
  }
  out.sentence = fmt::format("{} does not answer ({}); {}", name_of(rank), why, waiting.sentence());
  return out;
}

std::optional<Verdict> judge_answering(unsigned rank, const Summary& summary,
                                       const std::vector<Edge>& edges) {
  Waiting waiting(edges, rank);
  const bool waits_itself = std::any_of(edges.begin(), edges.end(),
                                        [rank](const Edge& edge) { return edge.from == rank; });
  if (waiting.ranks.empty() || (waits_itself && !hangs(summary))) return std::nullopt;
  Verdict out{.by = StuckBy::kCall, .rank = rank, .since = waiting.since, .waiting = waiting.ranks};
  std::string how = "its program calls, and waits for no rank that is named";
  if (hangs(summary)) {
    out.by = StuckBy::kProgram;
    out.since = summary.program_ago.value_or(waiting.since);
    how =
        summary.program_ago
            ? fmt::format("its program has made no call for {:.1f} s (its progress thread answers)",
                          in_seconds(*summary.program_ago))
            : "its program has made no call yet (its progress thread answers)";
  } else if (summary.in_call && *summary.in_call >= kStuckAfter) {
    how = fmt::format("its program has been in one call for {:.1f} s, with {} receives posted",
                      in_seconds(*summary.in_call), summary.receives_posted);
  }
  out.sentence = fmt::format("{} is stuck: {}; {}", name_of(rank), how, waiting.sentence());
  return out;
}

// From a rank along those that it waits for: who waits for somebody, and is no cause, leads to a
// cause or to a cycle.
std::optional<Verdict> find_cycle(const std::vector<Edge>& edges) {
  std::map<unsigned, const Edge*> next;
  for (const Edge& edge : edges) {
    const Edge*& longest = next[edge.from];
    if (longest == nullptr || edge.since > longest->since) longest = &edge;
  }
  for (const auto& [start, first] : next) {
    std::vector<unsigned> path;
    for (unsigned at = start;;) {
      const auto seen = std::find(path.begin(), path.end(), at);
      if (seen != path.end()) {
        path.erase(path.begin(), seen);
        break;
      }
      path.push_back(at);
      const auto edge = next.find(at);
      if (edge == next.end()) {
        path.clear();
        break;
      }
      at = edge->second->to;
    }
    if (path.empty()) continue;
    Age since = Age::max();  // for which all of them do
    for (const unsigned rank : path) since = std::min(since, next.at(rank)->since);
    Verdict out{.by = StuckBy::kCycle, .rank = path.front(), .since = since, .waiting = path};
    std::string names;
    for (const unsigned rank : path) {
      const Edge& edge = *next.at(rank);
      names +=
          fmt::format("{}{} for {}'s {}", names.empty() ? "" : ", ", name_of(rank),
                      name_of(edge.to), edge.what.substr(edge.what.starts_with("its ") ? 4 : 0));
    }
    out.sentence = fmt::format("{} wait for each other, for {:.1f} s: {}", names_of(path),
                               in_seconds(since), names);
    return out;
  }
  return std::nullopt;
}

void add_rails(unsigned rank, const Summary& summary, std::vector<Verdict>& out) {
  for (const RailSummary& rail : summary.rails) {
    if (rail.state == "up") continue;
    const std::string to = rail.rank == kNoRank ? printable(rail.remote) : name_of(rail.rank);
    Verdict& verdict = out.emplace_back();
    verdict.by = StuckBy::kRail;
    verdict.rank = rank;
    verdict.peer = rail.rank;
    verdict.rail = printable(rail.nic);
    verdict.since = rail.since;
    verdict.sentence =
        fmt::format("rail {} of {} to {} ({}) is {} for {:.1f} s: {}; {} packets lost",
                    verdict.rail, name_of(rank), to, printable(rail.remote), printable(rail.state),
                    in_seconds(rail.since), printable(rail.reason), rail.lost);
  }
}

}  // namespace

std::vector<unsigned> silent_ranks(const Job& job) {
  std::vector<unsigned> out;
  for (unsigned rank = 0; rank < job.size; ++rank) {
    if (!job.answers.contains(rank)) out.push_back(rank);
  }
  return out;
}

std::vector<Verdict> find_stuck(const Job& job) {
  const std::vector<Edge> edges = edges_of(job);
  std::vector<Verdict> out;
  for (const unsigned rank : silent_ranks(job)) out.push_back(judge_silent(job, rank, edges));
  for (const auto& [rank, summary] : job.answers) {
    if (auto verdict = judge_answering(rank, summary, edges)) out.push_back(std::move(*verdict));
  }
  if (out.empty()) {
    if (auto cycle = find_cycle(edges)) out.push_back(std::move(*cycle));
  }
  std::stable_sort(out.begin(), out.end(), [](const Verdict& a, const Verdict& b) {
    return a.waiting.empty() < b.waiting.empty();
  });
  for (const auto& [rank, summary] : job.answers) add_rails(rank, summary, out);
  return out;
}

const char* name(StuckBy by) {
  switch (by) {
    case StuckBy::kSilent:
      return "silent";
    case StuckBy::kGone:
      return "gone";
    case StuckBy::kProgram:
      return "program";
    case StuckBy::kCall:
      return "call";
    case StuckBy::kCycle:
      return "cycle";
    case StuckBy::kRail:
      return "rail";
  }
  return "?";
}

}  // namespace stat_program
