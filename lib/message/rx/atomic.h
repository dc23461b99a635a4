// The arithmetic of atomics: one operation on a vector of elements. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "pullman/operations.h"

namespace pullman::message {

struct Operands {
  std::span<const std::byte> operand;
  std::span<const std::byte> compare;  // of operations that compare
};

// `there` are the elements, aligned in any way; of all three spans there are as many. The operation
// is defined for the type.
void apply(AtomicOp op, AtomicType type, std::span<std::byte> there, const Operands& operands);

}  // namespace pullman::message
