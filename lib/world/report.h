// What all processes of a world do at its end if PULLMAN_REPORT is set: their counters go to rank 0
// along the tree, and rank 0 shows them on one page (counters.h).
#pragma once

#include <chrono>
#include <string>

#include "telemetry/rows.h"
#include "world/mail.h"
#include "world/place.h"
#include "world/roster.h"

namespace pullman::world {

// Returns where PULLMAN_REPORT has the page go: "1" is the standard error, anything else a file, as
// it is called from any folder; empty: there is no report.
std::string report_target();

struct ReportOptions {
  Place place;
  const telemetry::Rows& rows;  // of this process
  std::chrono::nanoseconds duration{};
  std::chrono::nanoseconds patience{};  // for the others' counters
  std::string target{};
};

// Waits for the processes below in the tree, within the patience, and sends on what they and this
// one have counted. Those below a process that has ended are waited for in its place. Throws Error.
void report(Mail& mail, Roster& roster, const ReportOptions& options);

}  // namespace pullman::world
