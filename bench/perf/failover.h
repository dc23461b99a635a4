// A verified stream while rails are cut and mended: what it cost, and whether anything was lost.
//
// Time: the client's. The two ends compare their clocks before the stream; then the server counts
// what arrives from the client's start on, by its own clock. So gaps are what the receiver saw;
// only where they lie relative to a cut is off by up to `clocks_differ_by_us`.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "arrivals.h"
#include "cutter.h"
#include "options.h"
#include "rail_watch.h"
#include "report.h"
#include "session.h"

namespace perf {

// A message says which one it is, and what else it must hold follows from that.
inline constexpr std::size_t kLeastFailoverBytes = 16;

// What came of one cut.
struct CutResult {
  CutDone done;
  // The longest that began soon after the cut or lasted over it; and the longest later one, until
  // the mend, of which the cut is hardly the reason.
  std::optional<std::chrono::nanoseconds> gap{};
  std::optional<std::chrono::nanoseconds> later_gap{};
  std::optional<std::chrono::nanoseconds> left{};        // until its rail was left
  std::optional<std::chrono::nanoseconds> reinstated{};  // from its mend until its rail sent again
  std::optional<double> after_mb_per_s{};                // from 50 ms after the cut until its mend
};

// All that reports are made of.
struct FailoverResult {
  Clock::time_point start;
  std::chrono::nanoseconds elapsed{0};
  std::vector<Bucket> arrived;
  std::vector<CutResult> cuts;
};

// The client's side of one run.
class Failover {
 public:
  explicit Failover(const Options& options) : options_(options) {}

  // The stream: as the other measurements (patterns.h).
  Outcome measure(Session& session, const Job& job);
  // The server's part, what follows from both, and the files.
  void conclude(Session& session, const nlohmann::json& server, Outcome& outcome);

 private:
  void compare_clocks(Session& session);
  void stream(Session& session, const Job& job, Outcome& outcome);
  void take_series(Session& session, const nlohmann::json& server);
  CutResult judge(const CutDone& done) const;
  std::chrono::nanoseconds longest_gap(Clock::time_point from, Clock::time_point to) const;
  double mb_per_s(Clock::time_point from, Clock::time_point to) const;

  const Options options_;
  std::chrono::nanoseconds server_ahead_{0};  // its clock
  std::chrono::nanoseconds clock_error_{0};   // at most
  std::optional<RailWatch> watch_;
  FailoverResult result_;
};

// The server's.
Outcome serve_failover(Session& session, const Job& job);

// failover_report.cc
nlohmann::ordered_json failover_json(const FailoverResult& result, const RailWatch& watch,
                                     const nlohmann::json& server);
std::string failover_text(const nlohmann::ordered_json& json, const RailWatch& watch);
// PREFIX.csv and PREFIX.svg. Throws Failure.
void write_failover(const std::string& prefix, const FailoverResult& result,
                    const RailWatch& watch);

}  // namespace perf
