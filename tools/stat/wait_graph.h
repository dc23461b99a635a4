// Which ranks of a job wait for which, and for what, by what they say of themselves. Each list of
// it is made once, so that a job of many ranks takes no more time than its waits. Pure.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "stat/verdict.h"
#include "world/summary.h"

namespace stat_program {

// What goes on comes within less.
inline constexpr pullman::world::Age kStuckAfter = std::chrono::seconds(1);

// The program makes no calls, and does not wait in one.
bool hangs(const pullman::world::Summary& summary);

class WaitGraph {
 public:
  // One rank waits for another.
  struct Edge {
    unsigned from = 0;
    unsigned to = 0;
    std::string what{};
    pullman::world::Age since{};
  };
  using Edges = std::vector<const Edge*>;

  explicit WaitGraph(const Job& job);
  WaitGraph(const WaitGraph&) = delete;
  WaitGraph& operator=(const WaitGraph&) = delete;

  // All that a rank waits for, and all that wait for it, by rank.
  const Edges& from(unsigned rank) const { return list(from_, rank); }
  const Edges& to(unsigned rank) const { return list(to_, rank); }

  // Returns those ranks, those that wait for them, and those that wait for these, and so on.
  std::set<unsigned> held_up_by(const std::vector<unsigned>& ranks) const;
  // Returns the cycles among the other ranks that one comes to along what each waits for longest.
  std::vector<Edges> cycles_beside(const std::set<unsigned>& others) const;

 private:
  using Lists = std::map<unsigned, Edges>;

  static const Edges& list(const Lists& lists, unsigned rank);
  const Edge& longest_from(unsigned rank) const;

  std::vector<Edge> edges_;
  Lists from_;
  Lists to_;
};

}  // namespace stat_program
