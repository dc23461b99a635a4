// The atomic operations that exist: libfabric's names and Pullman's.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>

#include <cstddef>
#include <optional>

#include "pullman/operations.h"

namespace pullman::ofi {

// The three families of calls.
enum class AtomicKind : std::uint8_t {
  kWrite,    // fi_atomic: returns nothing
  kFetch,    // fi_fetch_atomic: returns the values before it
  kCompare,  // fi_compare_atomic: the same, and changes them on a condition
};

// Returns an atomic of that kind without elements; nothing if it does not exist.
std::optional<Atomic> find_atomic(AtomicKind kind, fi_datatype type, fi_op op);

// Returns how many elements one call may have.
std::size_t max_elements(AtomicKind kind, AtomicType type);

// For fi_query_atomic and the *valid calls: returns 0 and the answer, or -FI_EOPNOTSUPP.
int ask_atomic(AtomicKind kind, fi_datatype type, fi_op op, std::size_t* count);
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* out,
                 std::uint64_t flags);

}  // namespace pullman::ofi
