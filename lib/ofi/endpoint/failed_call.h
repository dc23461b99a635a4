// A call that was accepted and is never started, because it was cancelled or has become invalid:
// reported as an operation that failed.
#pragma once

#include "ofi/calls.h"
#include "pullman/status.h"

namespace pullman::ofi {

template <typename Call>
void report_failure(const Call& call, Status why);

}  // namespace pullman::ofi
