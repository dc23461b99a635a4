// message/rx/atomic.h: the arithmetic, against numbers worked out by hand; and which combinations
// of operation and type are defined.
#include "message/rx/atomic.h"

#include <catch2/catch.hpp>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

namespace pullman::message {
namespace {

// Returns what the operation makes of `there`, one element of that type.
template <typename T>
T done(AtomicOp op, AtomicType type, T there, T operand, T compare = T{}) {
  std::vector<std::byte> memory(sizeof(T) + 1);  // unaligned
  std::memcpy(memory.data() + 1, &there, sizeof(T));
  apply(op, type, std::span(memory).subspan(1),
        {.operand = std::as_bytes(std::span(&operand, 1)),
         .compare = std::as_bytes(std::span(&compare, 1))});
  T result{};
  std::memcpy(&result, memory.data() + 1, sizeof(T));
  return result;
}

std::int32_t i32(AtomicOp op, std::int32_t there, std::int32_t operand, std::int32_t compare = 0) {
  return done(op, AtomicType::kInt32, there, operand, compare);
}

}  // namespace

TEST_CASE("each operation does to an integer what its name says") {
  CHECK(i32(AtomicOp::kMin, 3, -5) == -5);
  CHECK(i32(AtomicOp::kMin, -5, 3) == -5);
  CHECK(i32(AtomicOp::kMax, 3, -5) == 3);
  CHECK(i32(AtomicOp::kMax, -5, 3) == 3);
  CHECK(i32(AtomicOp::kSum, 40, 2) == 42);
  CHECK(i32(AtomicOp::kProduct, -6, 7) == -42);
  CHECK(i32(AtomicOp::kLogicalOr, 0, 0) == 0);
  CHECK(i32(AtomicOp::kLogicalOr, 0, 9) == 1);
  CHECK(i32(AtomicOp::kLogicalAnd, 4, 9) == 1);
  CHECK(i32(AtomicOp::kLogicalAnd, 4, 0) == 0);
  CHECK(i32(AtomicOp::kLogicalXor, 4, 9) == 0);
  CHECK(i32(AtomicOp::kLogicalXor, 4, 0) == 1);
  CHECK(i32(AtomicOp::kBitOr, 0b0101, 0b0011) == 0b0111);
  CHECK(i32(AtomicOp::kBitAnd, 0b0101, 0b0011) == 0b0001);
  CHECK(i32(AtomicOp::kBitXor, 0b0101, 0b0011) == 0b0110);
  CHECK(i32(AtomicOp::kRead, 7, 9) == 7);
  CHECK(i32(AtomicOp::kWrite, 7, 9) == 9);
}

TEST_CASE("a swap compares the given value with what is there, in that order") {
  CHECK(i32(AtomicOp::kSwapIfEqual, 5, 9, 5) == 9);
  CHECK(i32(AtomicOp::kSwapIfEqual, 5, 9, 4) == 5);
  CHECK(i32(AtomicOp::kSwapIfNotEqual, 5, 9, 5) == 5);
  CHECK(i32(AtomicOp::kSwapIfNotEqual, 5, 9, 4) == 9);
  CHECK(i32(AtomicOp::kSwapIfLessOrEqual, 5, 9, 5) == 9);
  CHECK(i32(AtomicOp::kSwapIfLessOrEqual, 5, 9, 6) == 5);
  CHECK(i32(AtomicOp::kSwapIfLess, 5, 9, 4) == 9);
  CHECK(i32(AtomicOp::kSwapIfLess, 5, 9, 5) == 5);
  CHECK(i32(AtomicOp::kSwapIfGreaterOrEqual, 5, 9, 5) == 9);
  CHECK(i32(AtomicOp::kSwapIfGreaterOrEqual, 5, 9, 4) == 5);
  CHECK(i32(AtomicOp::kSwapIfGreater, 5, 9, 6) == 9);
  CHECK(i32(AtomicOp::kSwapIfGreater, 5, 9, 5) == 5);
  CHECK(i32(AtomicOp::kMaskedSwap, 0b1100, 0b1010, 0b0110) == 0b1010);
}

TEST_CASE("an operand is computed with as its type: signed, unsigned, floating or complex") {
  CHECK(done<std::int8_t>(AtomicOp::kMax, AtomicType::kInt8, -1, 1) == 1);
  CHECK(done<std::uint8_t>(AtomicOp::kMax, AtomicType::kUint8, 255, 1) == 255);
  CHECK(done<std::int16_t>(AtomicOp::kMin, AtomicType::kInt16, -2, 1) == -2);
  CHECK(done<std::uint16_t>(AtomicOp::kMin, AtomicType::kUint16, 65535, 1) == 1);
  CHECK(done<std::uint32_t>(AtomicOp::kMax, AtomicType::kUint32, 1, 0x80000000) == 0x80000000);
  CHECK(done<std::int64_t>(AtomicOp::kMax, AtomicType::kInt64, -1, 0) == 0);
  CHECK(done<std::uint64_t>(AtomicOp::kMax, AtomicType::kUint64, ~0ull, 0) == ~0ull);
  CHECK(done(AtomicOp::kSum, AtomicType::kFloat, 0.5f, 0.25f) == 0.75f);
  CHECK(done(AtomicOp::kProduct, AtomicType::kDouble, 0.5, -3.0) == -1.5);
  using Complex = std::complex<double>;
  CHECK(done(AtomicOp::kProduct, AtomicType::kDoubleComplex, Complex(0, 1), Complex(0, 1)) ==
        Complex(-1, 0));
  using Short = std::complex<float>;
  CHECK(done(AtomicOp::kLogicalXor, AtomicType::kFloatComplex, Short(0, 1), Short(0, 0)) ==
        Short(1, 0));
  CHECK(done<long double>(AtomicOp::kSum, AtomicType::kLongDouble, 1.5L, 2.0L) == 3.5L);
}

TEST_CASE("sums and products of integers wrap") {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(done<std::int64_t>(AtomicOp::kSum, AtomicType::kInt64, kMost, 1) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(done<std::int16_t>(AtomicOp::kProduct, AtomicType::kInt16, 300, 300) ==
        static_cast<std::int16_t>(90'000));
  CHECK(done<std::uint8_t>(AtomicOp::kSum, AtomicType::kUint8, 255, 2) == 1);
}

TEST_CASE("bitwise operations are for integers only, and ordering ones not for complex numbers") {
  using Op = AtomicOp;
  using Type = AtomicType;
  for (const Op op : {Op::kBitOr, Op::kBitAnd, Op::kBitXor, Op::kMaskedSwap}) {
    CHECK(is_defined(op, Type::kUint8));
    CHECK_FALSE(is_defined(op, Type::kFloat));
    CHECK_FALSE(is_defined(op, Type::kLongDoubleComplex));
  }
  for (const Op op : {Op::kMin, Op::kMax, Op::kSwapIfLess, Op::kSwapIfLessOrEqual,
                      Op::kSwapIfGreater, Op::kSwapIfGreaterOrEqual}) {
    CHECK(is_defined(op, Type::kDouble));
    CHECK_FALSE(is_defined(op, Type::kDoubleComplex));
  }
  for (const Op op : {Op::kSum, Op::kProduct, Op::kRead, Op::kWrite, Op::kLogicalOr,
                      Op::kLogicalAnd, Op::kLogicalXor, Op::kSwapIfEqual, Op::kSwapIfNotEqual}) {
    CHECK(is_defined(op, Type::kInt64));
    CHECK(is_defined(op, Type::kFloatComplex));
  }
}

TEST_CASE("elements have the sizes that the wire says") {
  CHECK(size_of(AtomicType::kInt8) == 1);
  CHECK(size_of(AtomicType::kUint16) == 2);
  CHECK(size_of(AtomicType::kInt32) == 4);
  CHECK(size_of(AtomicType::kUint64) == 8);
  CHECK(size_of(AtomicType::kFloat) == 4);
  CHECK(size_of(AtomicType::kDouble) == 8);
  CHECK(size_of(AtomicType::kFloatComplex) == 8);
  CHECK(size_of(AtomicType::kDoubleComplex) == 16);
  CHECK(size_of(AtomicType::kLongDouble) == 16);
  CHECK(size_of(AtomicType::kLongDoubleComplex) == 32);
}

}  // namespace pullman::message
