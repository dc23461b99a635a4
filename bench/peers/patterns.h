// The tests of pullman-perf, with a carrier: the same messages, counted and timed at the same
// places.
#pragma once

#include "carrier.h"
#include "perf/report.h"

namespace peers {

struct Ends {
  perf::RawControl& control;
  Carrier& carrier;
  double patience_s;
};

perf::Outcome measure(Ends ends, const perf::Job& job);  // the client's half
void serve(Ends ends, const perf::Job& job);             // the server's

}  // namespace peers
