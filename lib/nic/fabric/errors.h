// The meaning of an errored completion, by provider: libfabric's own error number, and the
// provider's where that is more specific. Cold.
#pragma once

#include <rdma/fi_eq.h>

#include "nic/error_class.h"

namespace pullman::nic::fabric {

// Classifies a positive fi_cq_err_entry::err or result of a call.
ErrorClass class_of(int error);

// `verbs_status`: the provider reports EIO for every failure, and in prov_errno the status of the
// work completion (enum ibv_wc_status), which the InfiniBand specification defines.
ErrorClass class_of(const fi_cq_err_entry& entry, bool verbs_status);

// Whether no operation of that endpoint will ever complete.
inline bool is_fatal(ErrorClass kind) {
  return kind == ErrorClass::kFlushed;
}

}  // namespace pullman::nic::fabric
