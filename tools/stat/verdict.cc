#include "stat/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "pullman/status.h"
#include "stat/wait_graph.h"
#include "telemetry/snapshot.h"
#include "world/names.h"

namespace stat_program {
namespace {

using pullman::telemetry::printable;
using pullman::world::Age;
using pullman::world::kGone;
using pullman::world::kNoRank;
using pullman::world::name_of;
using pullman::world::names_of;
using pullman::world::RailSummary;
using pullman::world::Summary;
using pullman::world::WaitedFor;

double in_seconds(Age age) {
  return std::chrono::duration<double>(age).count();
}

// Those who wait for a rank, for what, and since when.
struct Waiting {
  std::vector<unsigned> ranks;
  std::set<std::string> what;
  Age since{};

  Waiting(const WaitGraph& graph, unsigned rank) {
    for (const WaitGraph::Edge* const edge : graph.to(rank)) {
      if (ranks.empty() || ranks.back() != edge->from) ranks.push_back(edge->from);
      what.insert(edge->what);
      since = std::max(since, edge->since);
    }
  }
  std::string sentence() const {
    if (ranks.empty()) return "no other rank waits for it";
    return fmt::format("{} {} for {}, for {:.1f} s", names_of(ranks),
                       ranks.size() == 1 ? "waits" : "wait", fmt::join(what, " and "),
                       in_seconds(since));
  }
};

// How ranks have ended, by what others say.
class Ends {
 public:
  explicit Ends(const Job& job) {
    for (const auto& [rank, summary] : job.answers) {
      for (const WaitedFor& wait : summary.waits) {
        if (wait.rank == kNoRank || !wait.what.starts_with(kGone)) continue;
        const std::string how = wait.what.substr(kGone.size());
        // Who ends a connection says nothing of the other end.
        if (how == name(pullman::Status::kClosed)) continue;
        std::string& known = how_[wait.rank];
        if (known.empty() || is_normal(known)) known = how;
      }
    }
  }

  // Returns nothing if nobody says that it has.
  std::optional<std::string> how(unsigned rank) const {
    const auto found = how_.find(rank);
    return found == how_.end() ? std::nullopt : std::optional(found->second);
  }
  // Returns whether it has said good-bye, as far as is known.
  bool is_normal(unsigned rank) const {
    const auto found = how_.find(rank);
    return found != how_.end() && is_normal(found->second);
  }

 private:
  static bool is_normal(const std::string& how) {
    return how == name(pullman::Status::kPeerClosed);
  }

  std::map<unsigned, std::string> how_;
};

Verdict judge_silent(const Job& job, unsigned rank, const WaitGraph& graph, const Ends& ends) {
  Waiting waiting(graph, rank);
  Verdict out{.rank = rank, .since = waiting.since, .waiting = waiting.ranks};
  const auto hint = job.hints.find(rank);
  std::string why = hint != job.hints.end()
                        ? hint->second
                        : "its program makes no calls and has no progress thread, or is stopped; "
                          "or it is gone, or no rank that answers is connected to it";
  if (const auto how = ends.how(rank)) {
    out.by = StuckBy::kGone;
    why = "others say that it is gone: " + printable(*how);
  }
  out.sentence = fmt::format("{} does not answer ({}); {}", name_of(rank), why, waiting.sentence());
  return out;
}

std::optional<Verdict> judge_answering(unsigned rank, const Summary& summary,
                                       const WaitGraph& graph) {
  Waiting waiting(graph, rank);
  const bool waits_itself = !graph.from(rank).empty();
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

Verdict judge_cycle(const WaitGraph::Edges& cycle) {
  Verdict out{.by = StuckBy::kCycle, .rank = cycle.front()->from, .since = Age::max()};
  std::string names;
  for (const WaitGraph::Edge* const edge : cycle) {
    out.waiting.push_back(edge->from);
    out.since = std::min(out.since, edge->since);  // for which all of them do
    names +=
        fmt::format("{}{} for {}'s {}", names.empty() ? "" : ", ", name_of(edge->from),
                    name_of(edge->to), edge->what.substr(edge->what.starts_with("its ") ? 4 : 0));
  }
  out.sentence = fmt::format("{} wait for each other, for {:.1f} s: {}", names_of(out.waiting),
                             in_seconds(out.since), names);
  return out;
}

// Who waits, and for none of those that are stuck already, waits for a cycle.
void add_cycles(const WaitGraph& graph, std::vector<Verdict>& out) {
  std::vector<unsigned> stuck;
  for (const Verdict& verdict : out) stuck.push_back(verdict.rank);
  for (const auto& cycle : graph.cycles_beside(graph.held_up_by(stuck))) {
    out.push_back(judge_cycle(cycle));
  }
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

std::vector<unsigned> ended_ranks(const Job& job) {
  const Ends ends(job);
  std::vector<unsigned> out;
  for (const unsigned rank : silent_ranks(job)) {
    if (ends.is_normal(rank)) out.push_back(rank);
  }
  return out;
}

std::vector<Verdict> find_stuck(const Job& job) {
  const WaitGraph graph(job);
  const Ends ends(job);
  std::vector<Verdict> out;
  for (const unsigned rank : silent_ranks(job)) {
    // Who has ended, and is missed by nobody, was done.
    if (ends.is_normal(rank) && graph.to(rank).empty()) continue;
    out.push_back(judge_silent(job, rank, graph, ends));
  }
  for (const auto& [rank, summary] : job.answers) {
    if (auto verdict = judge_answering(rank, summary, graph)) out.push_back(std::move(*verdict));
  }
  add_cycles(graph, out);
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
