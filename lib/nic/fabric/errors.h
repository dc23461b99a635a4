// What an errored completion says, by provider: libfabric's own error number, and the provider's
// where that says more. Cold.
#pragma once

#include <rdma/fi_eq.h>

#include "nic/error_class.h"

namespace pullman::nic::fabric {

// Of fi_cq_err_entry::err and what calls return (positive).
ErrorClass class_of(int error);

// `verbs_status`: the provider says EIO of every failure, and in prov_errno the status of the work
// completion (enum ibv_wc_status), which the InfiniBand specification has.
ErrorClass class_of(const fi_cq_err_entry& entry, bool verbs_status);

// Nothing posted by that endpoint will ever be done.
inline bool is_fatal(ErrorClass kind) {
  return kind == ErrorClass::kFlushed;
}

}  // namespace pullman::nic::fabric
