// What is measured: one function per test and side. Both sides run the same job at the same time;
// the client has said so and the server is ready.
#pragma once

#include "report.h"
#include "session.h"

namespace perf {

// latency.cc
Outcome measure_latency(Session& session, const Job& job);
Outcome serve_latency(Session& session, const Job& job);

// flow.cc. The client's outcomes lack what only the server can count: see combine() in run.cc.
Outcome measure_flow(Session& session, const Job& job);
Outcome serve_flow(Session& session, const Job& job);

}  // namespace perf
