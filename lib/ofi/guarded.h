// No exception leaves the provider: its callers are C programs.
#pragma once

#include <rdma/fi_errno.h>

#include <new>
#include <utility>

#include "ofi/errors.h"
#include "pullman/status.h"

namespace pullman::ofi {

// Returns what `body` returns, or the error number of the exception that it threw.
template <typename Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    tell(error);
    return -error_number(error.status());
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (...) {
    return -FI_EOTHER;
  }
}

}  // namespace pullman::ofi
