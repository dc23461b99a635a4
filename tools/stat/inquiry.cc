#include "stat/inquiry.h"

#include <algorithm>

#include "stat/wait_graph.h"

namespace stat_program {
namespace {

using pullman::world::RankSet;
using pullman::world::Summary;

constexpr std::chrono::milliseconds kRepeat(500);
// What has begun to wait for a process when it was asked first is stuck by then.
constexpr std::chrono::nanoseconds kBetweenRounds = kStuckAfter + std::chrono::milliseconds(100);

bool explains(const Job& job) {
  const std::vector<Verdict> stuck = find_stuck(job);
  return std::any_of(stuck.begin(), stuck.end(),
                     [](const Verdict& verdict) { return !verdict.waiting.empty(); });
}

}  // namespace

std::optional<RankSet> Inquiry::next_question(Time now) {
  const bool begins_second = !is_second_ && !explains_ && now >= second_at_;
  if (!begins_second && (now < repeat_at_ || all_heard())) return std::nullopt;
  repeat_at_ = now + kRepeat;
  if (begins_second) {
    is_second_ = true;
    heard_.clear();
  }
  // A set of no size has the process that is asked connect to nobody for it.
  if (heard_.empty()) return RankSet();
  RankSet asked(job_.size);
  for (const unsigned rank : heard_) asked.insert(rank);
  return asked;
}

void Inquiry::note_answer(const Summary& summary, Time now) {
  if (job_.size == 0) job_.size = summary.size;
  if (summary.size != job_.size) return;
  job_.answers.insert_or_assign(summary.rank, summary);
  if (!heard_.insert(summary.rank).second || is_second_) return;
  second_at_ = now + kBetweenRounds;
  if (all_heard()) explains_ = explains(job_);
}

bool Inquiry::is_over() const {
  return all_heard() && is_settled();
}

bool Inquiry::is_settled() const {
  return explains_ || (is_second_ && heard_.size() == job_.answers.size());
}

}  // namespace stat_program
