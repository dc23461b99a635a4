// Which call that all processes of a world make this one is in, and which process it waits for: for
// others to ask, from any thread.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "world/summary.h"

namespace pullman::world {

class CurrentCall {
 public:
  using Clock = std::chrono::steady_clock;

  // Notes the call as long as it lives.
  class Noted {
   public:
    Noted(CurrentCall& current, std::string name) : current_(current) {
      const std::lock_guard locked(current_.changing_);
      current_.name_ = std::move(name);
      current_.rank_ = kNoRank;
      current_.since_ = Clock::now();
    }
    ~Noted() {
      const std::lock_guard locked(current_.changing_);
      current_.name_.clear();
    }
    Noted(const Noted&) = delete;
    Noted& operator=(const Noted&) = delete;

   private:
    CurrentCall& current_;
  };

  // The call waits for that process as long as this lives.
  class Waiting {
   public:
    Waiting(CurrentCall& current, unsigned rank) : current_(current) { current_.wait_for(rank); }
    ~Waiting() { current_.wait_for(kNoRank); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    CurrentCall& current_;
  };

  std::optional<CollectiveCall> get() const {
    const std::lock_guard locked(changing_);
    if (name_.empty()) return std::nullopt;
    return CollectiveCall{.name = name_, .rank = rank_, .since = Clock::now() - since_};
  }

 private:
  void wait_for(unsigned rank) {
    const std::lock_guard locked(changing_);
    rank_ = rank;
    since_ = Clock::now();
  }

  mutable std::mutex changing_;
  std::string name_;  // empty: it is in none
  unsigned rank_ = kNoRank;
  Clock::time_point since_;
};

}  // namespace pullman::world
