// The two programs in one: the client goes through the sizes, the server does as it is told.
#pragma once

#include "options.h"

namespace perf {

// Both return the exit code. They throw Failure, or pullman::Error at set-up.
int run_client(const Options& options);
int run_server(const Options& options);

// The same on bare datagrams (raw_run.cc).
int run_raw_client(const Options& options);
int run_raw_server(const Options& options);

}  // namespace perf
