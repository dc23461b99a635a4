// What to ask a job next, and when that is enough: those that have not answered once more, since a
// message may go astray, and all of them a second time, since a process may know only from being
// asked the first time on for how long nothing has gone on. Pure: reads no clock, asks nobody.
#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "stat/verdict.h"
#include "world/question.h"

namespace stat_program {

class Inquiry {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Returns the ranks that need not answer the question that is to be asked now, or nothing if none
  // is. They are no set of the job's size if all are asked.
  std::optional<pullman::world::RankSet> next_question(Time now);
  void note_answer(const pullman::world::Summary& summary, Time now);

  bool has_begun() const { return job_.size != 0; }
  // All have answered, and so that it is known what is stuck.
  bool is_over() const;
  // Returns whether something that is stuck would have been seen.
  bool is_settled() const;
  Job& job() { return job_; }

 private:
  bool all_heard() const { return has_begun() && heard_.size() == job_.size; }

  Job job_;
  std::set<unsigned> heard_;  // in this round
  bool is_second_ = false;    // round
  bool explains_ = false;     // the first round has told for what ranks wait
  Time second_at_ = Time::max();
  Time repeat_at_ = Time::min();
};

}  // namespace stat_program
