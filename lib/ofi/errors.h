// Errors in the form that users of libfabric see: its error numbers, and its log.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pullman/status.h"

namespace pullman::ofi {

// Returns a positive number, as in an error entry; 0 for kOk.
int error_number(Status status);

// Returns the first status with that number; kInvalidArgument if there is none.
Status status_of(int error_number);

// Returns the text for the number in an error entry (fi_cq_strerror); also writes it to `out`,
// unless that is null, as far as there is room.
const char* write_sentence_of(int provider_number, char* out, std::size_t room);

// Writes to libfabric's log (FI_LOG_LEVEL=warn), which is mostly off, and to the library's
// (PULLMAN_LOG), which goes to standard error.
void tell(const Error& error);

}  // namespace pullman::ofi
