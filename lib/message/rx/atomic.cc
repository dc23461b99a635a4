#include "message/rx/atomic.h"

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace pullman {
namespace {

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

// Elements travel as they lie in memory, in little-endian order (wire.md 10.6).
static_assert(std::endian::native == std::endian::little);

// Calls visit with a value of the type.
template <typename Visit>
auto with(AtomicType type, Visit visit) {
  switch (type) {
    case AtomicType::kInt8:
      return visit(std::int8_t{});
    case AtomicType::kUint8:
      return visit(std::uint8_t{});
    case AtomicType::kInt16:
      return visit(std::int16_t{});
    case AtomicType::kUint16:
      return visit(std::uint16_t{});
    case AtomicType::kInt32:
      return visit(std::int32_t{});
    case AtomicType::kUint32:
      return visit(std::uint32_t{});
    case AtomicType::kInt64:
      return visit(std::int64_t{});
    case AtomicType::kUint64:
      return visit(std::uint64_t{});
    case AtomicType::kFloat:
      return visit(float{});
    case AtomicType::kDouble:
      return visit(double{});
    case AtomicType::kFloatComplex:
      return visit(std::complex<float>{});
    case AtomicType::kDoubleComplex:
      return visit(std::complex<double>{});
    case AtomicType::kLongDouble:
      return visit(static_cast<long double>(0));
    case AtomicType::kLongDoubleComplex:
      return visit(std::complex<long double>{});
  }
  return visit(std::uint8_t{});
}

template <typename T>
constexpr bool defined_for(AtomicOp op) {
  switch (op) {
    case AtomicOp::kMin:
    case AtomicOp::kMax:
    case AtomicOp::kSwapIfLessOrEqual:
    case AtomicOp::kSwapIfLess:
    case AtomicOp::kSwapIfGreaterOrEqual:
    case AtomicOp::kSwapIfGreater:
      return !IsComplex<T>::value;
    case AtomicOp::kBitOr:
    case AtomicOp::kBitAnd:
    case AtomicOp::kBitXor:
    case AtomicOp::kMaskedSwap:
      return std::is_integral_v<T>;
    case AtomicOp::kSum:
    case AtomicOp::kProduct:
    case AtomicOp::kLogicalOr:
    case AtomicOp::kLogicalAnd:
    case AtomicOp::kLogicalXor:
    case AtomicOp::kRead:
    case AtomicOp::kWrite:
    case AtomicOp::kSwapIfEqual:
    case AtomicOp::kSwapIfNotEqual:
      return true;
  }
  return false;
}

template <typename T>
struct Element {
  T there;
  T operand;
  T compare;
};

// Sums and products of integers wrap.
template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename T>
T truth(bool value) {
  return static_cast<T>(value ? 1 : 0);
}

template <typename T>
T ordered(AtomicOp op, const Element<T>& e) {
  if constexpr (!IsComplex<T>::value) {
    switch (op) {
      case AtomicOp::kMin:
        return e.operand < e.there ? e.operand : e.there;
      case AtomicOp::kMax:
        return e.there < e.operand ? e.operand : e.there;
      case AtomicOp::kSwapIfLessOrEqual:
        return e.compare <= e.there ? e.operand : e.there;
      case AtomicOp::kSwapIfLess:
        return e.compare < e.there ? e.operand : e.there;
      case AtomicOp::kSwapIfGreaterOrEqual:
        return e.compare >= e.there ? e.operand : e.there;
      case AtomicOp::kSwapIfGreater:
        return e.compare > e.there ? e.operand : e.there;
      default:
        break;
    }
  }
  PULLMAN_CHECK(false);
  return e.there;
}

template <typename T>
T bitwise(AtomicOp op, const Element<T>& e) {
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::kBitOr:
        return static_cast<T>(e.there | e.operand);
      case AtomicOp::kBitAnd:
        return static_cast<T>(e.there & e.operand);
      case AtomicOp::kBitXor:
        return static_cast<T>(e.there ^ e.operand);
      case AtomicOp::kMaskedSwap:
        return static_cast<T>((e.operand & e.compare) | (e.there & ~e.compare));
      default:
        break;
    }
  }
  PULLMAN_CHECK(false);
  return e.there;
}

template <typename T>
T result_of(AtomicOp op, const Element<T>& e) {
  const T zero{};
  switch (op) {
    case AtomicOp::kSum:
      return sum(e.there, e.operand);
    case AtomicOp::kProduct:
      return product(e.there, e.operand);
    case AtomicOp::kLogicalOr:
      return truth<T>(e.there != zero || e.operand != zero);
    case AtomicOp::kLogicalAnd:
      return truth<T>(e.there != zero && e.operand != zero);
    case AtomicOp::kLogicalXor:
      return truth<T>((e.there != zero) != (e.operand != zero));
    case AtomicOp::kRead:
      return e.there;
    case AtomicOp::kWrite:
      return e.operand;
    case AtomicOp::kSwapIfEqual:
      return e.compare == e.there ? e.operand : e.there;
    case AtomicOp::kSwapIfNotEqual:
      return e.compare != e.there ? e.operand : e.there;
    case AtomicOp::kMin:
    case AtomicOp::kMax:
    case AtomicOp::kSwapIfLessOrEqual:
    case AtomicOp::kSwapIfLess:
    case AtomicOp::kSwapIfGreaterOrEqual:
    case AtomicOp::kSwapIfGreater:
      return ordered(op, e);
    case AtomicOp::kBitOr:
    case AtomicOp::kBitAnd:
    case AtomicOp::kBitXor:
    case AtomicOp::kMaskedSwap:
      return bitwise(op, e);
  }
  return e.there;
}

template <typename T>
void apply_to(AtomicOp op, std::span<std::byte> there, const message::Operands& operands) {
  for (std::size_t at = 0; at < there.size(); at += sizeof(T)) {
    Element<T> e{};
    std::memcpy(&e.there, there.data() + at, sizeof(T));
    std::memcpy(&e.operand, operands.operand.data() + at, sizeof(T));
    if (compares(op)) std::memcpy(&e.compare, operands.compare.data() + at, sizeof(T));
    const T result = result_of(op, e);
    std::memcpy(there.data() + at, &result, sizeof(T));
  }
}

}  // namespace

std::size_t size_of(AtomicType type) {
  return with(type, [](auto zero) { return sizeof(zero); });
}

bool is_defined(AtomicOp op, AtomicType type) {
  return with(type, [op](auto zero) { return defined_for<decltype(zero)>(op); });
}

namespace message {

void apply(AtomicOp op, AtomicType type, std::span<std::byte> there, const Operands& operands) {
  PULLMAN_CHECK(is_defined(op, type) && operands.operand.size() == there.size());
  if (op == AtomicOp::kRead) return;
  with(type, [&](auto zero) { apply_to<decltype(zero)>(op, there, operands); });
}

}  // namespace message
}  // namespace pullman
