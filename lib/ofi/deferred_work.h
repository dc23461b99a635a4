// A domain's deferred work (fi_trigger(3), "Deferred work queues"): FI_QUEUE_WORK and its like.
#pragma once

namespace pullman::ofi {

class Domain;

// Does fi_control() of a domain. Returns 0 or an error number.
int control_work(Domain& domain, int command, void* argument);

}  // namespace pullman::ofi
