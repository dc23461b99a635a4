// One run of one size: what the client decides and tells the server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "options.h"
#include "report.h"

namespace perf {

struct Job {
  Test test = Test::kLatency;
  std::size_t size = 0;
  std::size_t window = 1;
  bool check = false;
  std::uint64_t run = 0;         // counts; part of the data's tags and contents
  std::uint64_t iterations = 0;  // client only; 0: until `duration` is over
  std::chrono::nanoseconds duration{0};
  Report* report = nullptr;  // client only: who wants to hear of progress
  bool warm_up = false;      // client only: nothing is measured
};

// As it travels, and back. Believes nothing (the other end may be anybody): throws Failure.
nlohmann::json to_json(const Job& job);
Job to_job(const nlohmann::json& json);

// A tenth of the run, unmeasured: connects, fills the caches, opens the congestion window.
Job warm_up(Job job);

// Says when a run is over, by count or by time.
class Stop {
 public:
  explicit Stop(const Job& job) : job_(job), start_(Clock::now()) {}

  // `messages` have been sent. Looks at the clock every 16th call only, while messages are small.
  bool reached(std::uint64_t messages) {
    if (job_.iterations != 0 && messages >= job_.iterations) return true;
    if ((calls_++ & (job_.size < 4096 ? 15 : 0)) != 0) return over_;
    const Clock::time_point now = Clock::now();
    over_ = job_.iterations == 0 && now - start_ >= job_.duration;
    if (job_.report != nullptr) job_.report->progress(job_.size, messages, now);
    return over_;
  }

  std::uint64_t messages_left(std::uint64_t messages) const {
    return job_.iterations == 0 ? ~std::uint64_t{0} : job_.iterations - messages;
  }

 private:
  const Job& job_;
  Clock::time_point start_;
  std::uint64_t calls_ = 0;
  bool over_ = false;
};

}  // namespace perf
