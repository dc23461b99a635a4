#include "world/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "pullman/status.h"
#include "world/counters.h"
#include "world/names.h"
#include "world/tree.h"

namespace pullman::world {
namespace {

constexpr unsigned kFirst = 0;

// How far a rank is from the root, and the farthest.
unsigned depth_of(const Tree& tree, unsigned rank) {
  unsigned depth = 0;
  for (; !tree.is_root(rank); ++depth) rank = tree.parent(rank);
  return depth;
}

// Counters of processes below.
class Gathering {
 public:
  Gathering(Mail& mail, Roster& roster, Place place)
      : mail_(mail), roster_(roster), place_(place), tree_(place.size, kFirst) {}

  // Each process waits for less long than the one above it, which so still hears of it.
  AllCounters gather(Counters own, std::chrono::nanoseconds patience) {
    AllCounters all;
    all[place_.rank] = std::move(own);
    const unsigned height = depth_of(tree_, place_.size - 1);
    const auto end =
        Mail::Clock::now() + patience * (height + 1 - depth_of(tree_, place_.rank)) / (height + 1);
    wait_for_children_of(place_.rank);
    while (!pending_.empty() && Mail::Clock::now() < end) {
      const auto pending = pending_;
      for (const auto& [rank, gone_since] : pending) look_for(rank, all);
      if (!pending_.empty()) mail_.pass_time();
    }
    return all;
  }

  // To the next process above that has not ended.
  void pass_up(const AllCounters& all) {
    for (unsigned above = place_.rank; !tree_.is_root(above);) {
      above = tree_.parent(above);
      const auto known = roster_.known(above);
      if (known && mail_.has_ended(*known)) continue;
      return mail_.send(roster_.peer(above), Kind::kReport, 0, encode(all), name_of(above));
    }
  }

 private:
  void wait_for_children_of(unsigned rank) {
    for (const unsigned child : tree_.children(rank)) {
      pending_.emplace(child, Mail::Clock::time_point::max());
    }
  }

  // What a process has sent before it ended is received for a moment after that.
  void look_for(unsigned rank, AllCounters& all) {
    constexpr std::chrono::milliseconds kGraceAtEnd(500);
    const auto peer = roster_.known(rank);
    if (!peer) return;
    auto letter = find(*peer, rank);
    if (letter) {
      if (!decode(*letter, place_.size, all)) {
        log().warn("{} counts other things: is it of another version?", name_of(rank));
      }
      pending_.erase(rank);
    } else if (mail_.has_ended(*peer)) {
      const auto now = Mail::Clock::now();
      auto& gone_since = pending_[rank];
      gone_since = std::min(gone_since, now);
      if (gone_since >= now - kGraceAtEnd) return;
      pending_.erase(rank);
      wait_for_children_of(rank);
    }
  }

  std::optional<Bytes> find(PeerId peer, unsigned rank) {
    try {
      return mail_.find(peer, Kind::kReport, 0, name_of(rank));
    } catch (const Error& error) {
      log().info("{}", error.what());
      return std::nullopt;
    }
  }

  Mail& mail_;
  Roster& roster_;
  const Place place_;
  const Tree tree_;
  std::map<unsigned, Mail::Clock::time_point> pending_;  // and since when they have ended
};

// What cannot be written where it should be is not lost.
void show(const Page& page, const std::string& target) {
  if (target != "1") {
    std::ofstream file(target, std::ios::trunc);
    file << to_json(page);
    file.close();
    if (file) return;
    log().warn("the report of the job cannot be written to {} (PULLMAN_REPORT), and follows here",
               target);
  }
  fmt::print(stderr, "{}", to_table(page));
}

}  // namespace

std::string report_target() {
  const char* const told = std::getenv("PULLMAN_REPORT");
  const std::string target = told == nullptr ? "" : told;
  if (target.empty() || target == "0") return "";
  std::error_code error;
  const auto whole = std::filesystem::absolute(target, error);
  return target == "1" || error ? target : whole.string();
}

void report(Mail& mail, Roster& roster, const ReportOptions& options) {
  Gathering gathering(mail, roster, options.place);
  AllCounters all = gathering.gather(counters_of(options.rows), options.patience);
  if (options.place.rank != kFirst) return gathering.pass_up(all);
  show({.size = options.place.size, .duration = options.duration, .counters = std::move(all)},
       options.target);
}

}  // namespace pullman::world
