// Cuts NICs of this machine (or network namespace) and mends them, at given times, in a thread of
// its own, which sleeps in between. Needs root.
//
// Whatever ends the program, short of SIGKILL, what is cut is mended first. Does not know who uses
// the NICs.
#pragma once

#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cuts.h"
#include "report.h"

namespace perf {

// When it was really done: not before the first, nor after the second.
struct Moment {
  Clock::time_point begin;
  Clock::time_point end;
};

struct CutDone {
  Cut cut;
  std::optional<Moment> made;
  std::optional<Moment> mended;
};

class Deed;

class Cutter {
 public:
  // Throws Failure if these cannot be cut here.
  static void check(const std::vector<Cut>& cuts);

  Cutter(std::vector<Cut> cuts, Clock::time_point start);
  // Mends what is still cut.
  ~Cutter();
  Cutter(const Cutter&) = delete;
  Cutter& operator=(const Cutter&) = delete;

  // As things are now. What went wrong is a Failure.
  std::vector<CutDone> done() const;

 private:
  struct Step {
    Clock::time_point due;
    std::size_t cut;
    bool mend;
  };

  void run();
  void take(const Step& step, Deed& deed);
  // False: a signal came, and the thread is to end.
  bool sleep_until(Clock::time_point due);
  void mend_all();

  std::vector<Step> steps_;
  mutable std::mutex mutex_;  // done_, problem_
  std::vector<CutDone> done_;
  std::string problem_;
  std::thread thread_;
};

}  // namespace perf
