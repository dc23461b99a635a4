// Errors as users of libfabric see them: its error numbers, and its log.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pullman/status.h"

namespace pullman::ofi {

// Positive, as in an error entry; 0 for kOk.
int error_number(Status status);

// The first status with that number; kInvalidArgument if there is none.
Status status_of(int error_number);

// The sentence behind the number of an error entry (fi_cq_strerror); also into `out`, if it is not
// null, as far as there is room.
const char* write_sentence_of(int provider_number, char* out, std::size_t room);

// Into libfabric's log (FI_LOG_LEVEL=warn), which few read, and the library's (PULLMAN_LOG),
// which goes to standard error.
void tell(const Error& error);

}  // namespace pullman::ofi
