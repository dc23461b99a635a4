// Reports a call that was accepted but will never be started, because it was cancelled or has
// become invalid, as a failed operation.
#pragma once

#include "ofi/calls.h"
#include "pullman/status.h"

namespace pullman::ofi {

template <typename Call>
void report_failure(const Call& call, Status why);

}  // namespace pullman::ofi
