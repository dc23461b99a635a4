// Which atomic operations there are: libfabric's names of them, and Pullman's.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include <cstddef>
#include <optional>

#include "pullman/operations.h"

namespace pullman::ofi {

// The three families of calls.
enum class AtomicKind : std::uint8_t {
  kWrite,    // fi_atomic: tells nothing
  kFetch,    // fi_fetch_atomic: what was there before
  kCompare,  // fi_compare_atomic: the same, and changes it on a condition
};

// An atomic of that kind without any elements yet; nothing if there is no such one.
std::optional<Atomic> find_atomic(AtomicKind kind, fi_datatype type, fi_op op);

// How many elements one call may have.
std::size_t max_elements(AtomicKind kind, AtomicType type);

// fi_query_atomic and the *valid calls: 0 and the answer, or -FI_EOPNOTSUPP.
int ask_atomic(AtomicKind kind, fi_datatype type, fi_op op, std::size_t* count);
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* out,
                 std::uint64_t flags);

}  // namespace pullman::ofi
