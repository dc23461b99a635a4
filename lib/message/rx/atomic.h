// The arithmetic of atomics: one operation on a vector of elements. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "pullman/operations.h"

namespace pullman::message {

struct Operands {
  std::span<const std::byte> operand;
  std::span<const std::byte> compare;  // for operations that compare
};

// `there` holds the elements, with any alignment; the three spans have equally many. The operation
// must be defined for the type.
void apply(AtomicOp op, AtomicType type, std::span<std::byte> there, const Operands& operands);

}  // namespace pullman::message
