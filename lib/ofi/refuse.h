// Operations of libfabric that this provider does not have: callers get a "no", never a null
// pointer to jump to.
#pragma once

#include <rdma/fi_errno.h>

namespace pullman::ofi {

template <typename Function>
struct Refusal;

template <typename Result, typename... Arguments>
struct Refusal<Result (*)(Arguments...)> {
  static Result refuse(Arguments...) { return -FI_ENOSYS; }
};

// For a member of one of libfabric's tables: `.join = kRefuse<decltype(fi_ops_cm::join)>`.
template <typename Function>
inline constexpr Function kRefuse = &Refusal<Function>::refuse;

}  // namespace pullman::ofi
