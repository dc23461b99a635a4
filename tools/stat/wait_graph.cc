#include "stat/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "telemetry/snapshot.h"

namespace stat_program {
namespace {

using pullman::telemetry::printable;
using pullman::world::kGone;
using pullman::world::kNoRank;
using pullman::world::kWaitsForMessage;
using pullman::world::Summary;
using pullman::world::WaitedFor;

// A program that does not call cannot receive: its receives are not what it waits for.
bool counts(const Summary& summary, const WaitedFor& wait) {
  if (wait.since < kStuckAfter || wait.rank == kNoRank || wait.what.starts_with(kGone))
    return false;
  return wait.what != kWaitsForMessage || !hangs(summary);
}

std::vector<WaitGraph::Edge> edges_of(const Job& job) {
  std::vector<WaitGraph::Edge> out;
  for (const auto& [rank, summary] : job.answers) {
    if (const auto& call = summary.collective; call && call->since >= kStuckAfter &&
                                               call->rank < job.size && call->rank != rank &&
                                               !hangs(summary)) {
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

}  // namespace

bool hangs(const Summary& summary) {
  return summary.has_thread && !summary.in_call &&
         (!summary.program_ago || *summary.program_ago >= kStuckAfter);
}

WaitGraph::WaitGraph(const Job& job) : edges_(edges_of(job)) {
  for (const Edge& edge : edges_) {
    from_[edge.from].push_back(&edge);
    to_[edge.to].push_back(&edge);
  }
}

const WaitGraph::Edges& WaitGraph::list(const Lists& lists, unsigned rank) {
  static const Edges none;
  const auto found = lists.find(rank);
  return found == lists.end() ? none : found->second;
}

std::set<unsigned> WaitGraph::held_up_by(const std::vector<unsigned>& ranks) const {
  std::set<unsigned> out(ranks.begin(), ranks.end());
  std::vector<unsigned> next(out.begin(), out.end());
  while (!next.empty()) {
    const unsigned rank = next.back();
    next.pop_back();
    for (const Edge* const edge : to(rank)) {
      if (out.insert(edge->from).second) next.push_back(edge->from);
    }
  }
  return out;
}

const WaitGraph::Edge& WaitGraph::longest_from(unsigned rank) const {
  const Edges& all = from(rank);
  return **std::max_element(all.begin(), all.end(),
                            [](const Edge* a, const Edge* b) { return a->since < b->since; });
}

// No rank is gone through twice: who comes to one that another has come to before finds nothing
// new from there on.
std::vector<WaitGraph::Edges> WaitGraph::cycles_beside(const std::set<unsigned>& others) const {
  std::vector<Edges> out;
  std::set<unsigned> come_to;
  for (const auto& [start, edges] : from_) {
    Edges way;
    unsigned at = start;
    while (!others.contains(at) && !from(at).empty() && come_to.insert(at).second) {
      way.push_back(&longest_from(at));
      at = way.back()->to;
    }
    const auto first =
        std::find_if(way.begin(), way.end(), [at](const Edge* edge) { return edge->from == at; });
    if (first != way.end()) out.emplace_back(first, way.end());
  }
  return out;
}

}  // namespace stat_program
