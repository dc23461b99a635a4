// Operations of libfabric that this provider does not have: callers get an error, never a null
// pointer to call.
#pragma once

#include <rdma/fi_errno.h>

#include <type_traits>

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

// Returns a table in which these operations are refused.
template <typename Table, auto... Members>
Table refused_table() {
  Table table{};
  table.size = sizeof table;
  ((table.*Members = kRefuse<std::remove_reference_t<decltype(table.*Members)>>), ...);
  return table;
}

}  // namespace pullman::ofi
