#include "ofi/atomics.h"

#include <rdma/fi_errno.h>

namespace pullman::ofi {
namespace {

// Both enumerations list operations and types in the same order; the checks of their ends prove it.
static_assert(FI_MIN == static_cast<int>(AtomicOp::kMin));
static_assert(FI_BXOR == static_cast<int>(AtomicOp::kBitXor));
static_assert(FI_ATOMIC_READ == static_cast<int>(AtomicOp::kRead));
static_assert(FI_ATOMIC_WRITE == static_cast<int>(AtomicOp::kWrite));
static_assert(FI_CSWAP == static_cast<int>(AtomicOp::kSwapIfEqual));
static_assert(FI_CSWAP_GT == static_cast<int>(AtomicOp::kSwapIfGreater));
static_assert(FI_MSWAP == static_cast<int>(AtomicOp::kMaskedSwap));
static_assert(FI_INT8 == static_cast<int>(AtomicType::kInt8));
static_assert(FI_UINT64 == static_cast<int>(AtomicType::kUint64));
static_assert(FI_FLOAT == static_cast<int>(AtomicType::kFloat));
static_assert(FI_LONG_DOUBLE_COMPLEX == static_cast<int>(AtomicType::kLongDoubleComplex));

bool belongs(AtomicOp op, AtomicKind kind) {
  if (op == AtomicOp::kRead) return kind == AtomicKind::kFetch;
  return compares(op) == (kind == AtomicKind::kCompare);
}

}  // namespace

std::optional<Atomic> find_atomic(AtomicKind kind, fi_datatype type, fi_op op) {
  const auto type_number = static_cast<unsigned>(type), op_number = static_cast<unsigned>(op);
  if (type_number > FI_LONG_DOUBLE_COMPLEX || op_number > FI_MSWAP) return std::nullopt;
  Atomic atomic;
  atomic.op = static_cast<AtomicOp>(op_number);
  atomic.type = static_cast<AtomicType>(type_number);
  if (!belongs(atomic.op, kind) || !is_defined(atomic.op, atomic.type)) return std::nullopt;
  return atomic;
}

std::size_t max_elements(AtomicKind kind, AtomicType type) {
  const std::size_t vectors = kind == AtomicKind::kCompare ? 2 : 1;
  return kMaxAtomicBytes / vectors / size_of(type);
}

int ask_atomic(AtomicKind kind, fi_datatype type, fi_op op, std::size_t* count) {
  const auto atomic = find_atomic(kind, type, op);
  if (!atomic) return -FI_EOPNOTSUPP;
  if (count == nullptr) return -FI_EINVAL;
  *count = max_elements(kind, atomic->type);
  return 0;
}

int query_atomic(fid_domain*, fi_datatype type, fi_op op, fi_atomic_attr* out,
                 std::uint64_t flags) {
  if (out == nullptr || (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) != 0) return -FI_EINVAL;
  AtomicKind kind = AtomicKind::kWrite;
  if ((flags & FI_FETCH_ATOMIC) != 0) kind = AtomicKind::kFetch;
  if ((flags & FI_COMPARE_ATOMIC) != 0) kind = AtomicKind::kCompare;
  const int result = ask_atomic(kind, type, op, &out->count);
  if (result == 0) out->size = size_of(static_cast<AtomicType>(type));
  return result;
}

}  // namespace pullman::ofi
