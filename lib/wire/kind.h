// The kind of a message: the second byte of its MESSAGE or CHUNKs, 0 for a plain one. And its lead:
// the first bytes of its data, which are for the peer's library (wire.md 4.12, 10).
//
// Knows the kinds, and the length and contents of their leads. Does not know how they are
// processed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pullman::wire {

// wire.md 10.1
enum class Class : std::uint8_t {
  kMessage = 0,  // goes to the matching of its space
  kPut = 1,      // is written into a region
  kGet = 2,      // asks for bytes of a region
  kAtomic = 3,   // asks for an operation on elements of a region
  kAnswer = 4,   // the data that a get or an atomic asked for
};

inline constexpr std::uint8_t kSpaceOfKind = 0x03;
inline constexpr std::uint8_t kImmediateOfKind = 0x04;
inline constexpr std::uint8_t kSynchronousOfKind = 0x08;
inline constexpr unsigned kClassShift = 4;
// The kind is of a message of a higher space: in place of the class it has the rest of the space.
inline constexpr std::uint8_t kHighOfKind = 0x80;
inline constexpr std::uint8_t kHighSpaceOfKind = 0x70;
inline constexpr unsigned kHighSpaceShift = 2;
inline constexpr unsigned kSpacesOnWire = 32;

constexpr Class class_of(std::uint8_t kind) {
  return (kind & kHighOfKind) != 0 ? Class::kMessage : static_cast<Class>(kind >> kClassShift);
}
constexpr std::uint8_t space_of(std::uint8_t kind) {
  const unsigned high = (kind & kHighOfKind) != 0 ? kind & kHighSpaceOfKind : 0u;
  return static_cast<std::uint8_t>((kind & kSpaceOfKind) | high >> kHighSpaceShift);
}
// Returns the kind of a plain message of that space.
constexpr std::uint8_t kind_of_space(unsigned space) {
  const unsigned high = (space & ~unsigned{kSpaceOfKind}) << kHighSpaceShift;
  return static_cast<std::uint8_t>((space & kSpaceOfKind) | high | (high != 0 ? kHighOfKind : 0u));
}
constexpr bool has_immediate(std::uint8_t kind) {
  return (kind & kImmediateOfKind) != 0;
}
constexpr bool is_synchronous(std::uint8_t kind) {
  return (kind & kSynchronousOfKind) != 0;
}
constexpr std::uint8_t kind_of(Class what) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(what) << kClassShift);
}

inline constexpr std::size_t kImmediateBytes = 8;
inline constexpr std::size_t kPutLeadBytes = 8;      // offset
inline constexpr std::size_t kGetLeadBytes = 16;     // offset, length
inline constexpr std::size_t kAtomicLeadBytes = 16;  // offset, operation, type, fetches, 0, count
inline constexpr std::size_t kMaxLeadBytes = 16;

constexpr std::size_t lead_bytes(std::uint8_t kind) {
  const std::size_t immediate = has_immediate(kind) ? kImmediateBytes : 0;
  switch (class_of(kind)) {
    case Class::kMessage:
    case Class::kAnswer:
      return immediate;
    case Class::kPut:
      return immediate + kPutLeadBytes;
    case Class::kGet:
      return kGetLeadBytes;
    case Class::kAtomic:
      return kAtomicLeadBytes;
  }
  return 0;
}

// The largest size of the operands and compares of one atomic (wire.md 10.6).
inline constexpr std::size_t kMaxAtomicBytes = 2048;

// Returns true if a message of that kind may have `total` bytes.
constexpr bool kind_is_sane(std::uint8_t kind, std::uint64_t total) {
  if ((kind & kHighOfKind) != 0) {
    if ((kind & kHighSpaceOfKind) == 0) return false;  // a low space has only one encoding
  } else if (kind >> kClassShift > static_cast<unsigned>(Class::kAnswer)) {
    return false;
  }
  const Class what = class_of(kind);
  const std::uint8_t bits = kind & (kSpaceOfKind | kImmediateOfKind | kSynchronousOfKind);
  const std::uint8_t allowed = what == Class::kMessage ? bits
                               : what == Class::kPut   ? kImmediateOfKind
                                                       : 0;
  if ((bits & ~allowed) != 0 || total < lead_bytes(kind)) return false;
  if (what == Class::kGet) return total == kGetLeadBytes;
  return what != Class::kAtomic || total <= kAtomicLeadBytes + kMaxAtomicBytes;
}

// A message of at most this many bytes, lead included, is short: it arrives whole (wire.md 4.4),
// and its receiver keeps it in little memory (4.6).
inline constexpr std::size_t kMaxShortBytes = 24;
constexpr bool is_short(std::uint8_t kind, std::uint64_t total) {
  return class_of(kind) == Class::kMessage && total <= kMaxShortBytes;
}

// Returns true if an ENVELOPE may announce a message of that many bytes (wire.md 4.12). Gets and
// atomics are needed completely at their turn, and short puts and messages take little more memory
// than their envelopes, or less.
constexpr bool may_be_announced(std::uint8_t kind, std::uint64_t total) {
  if (class_of(kind) == Class::kPut) return total > kMaxAtomicBytes;
  return class_of(kind) == Class::kMessage && total > kMaxShortBytes;
}

// Returns how many bytes of a message must have arrived before it is processed. 0 means that its
// first ones will do.
constexpr std::uint64_t needed(std::uint8_t kind, std::uint64_t total) {
  switch (class_of(kind)) {
    case Class::kMessage:
    case Class::kAnswer:
      return 0;
    case Class::kPut:
      return lead_bytes(kind);
    case Class::kGet:
    case Class::kAtomic:
      return total;
  }
  return total;
}

// The values of a RESULT (wire.md 10.2).
enum class Result : std::uint8_t {
  kDone = 0,
  kRefusedAccess = 1,
};

// Leads. Writers return the number of bytes written.
using Lead = std::array<std::byte, kMaxLeadBytes>;

struct PutLead {
  std::uint64_t immediate = 0;  // if has_immediate(kind)
  std::uint64_t offset = 0;     // in the region
};
std::size_t put_immediate(std::byte* out, std::uint64_t immediate);
std::size_t put_put_lead(std::byte* out, std::uint8_t kind, const PutLead& lead);
PutLead read_put_lead(const std::byte* in, std::uint8_t kind);

struct GetLead {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
std::size_t put_get_lead(std::byte* out, const GetLead& lead);
GetLead read_get_lead(const std::byte* in);

struct AtomicLead {
  std::uint64_t offset = 0;
  std::uint8_t op = 0;    // AtomicOp
  std::uint8_t type = 0;  // AtomicType
  bool fetches = false;
  std::uint32_t count = 0;  // of elements
};
std::size_t put_atomic_lead(std::byte* out, const AtomicLead& lead);
// Returns nothing if it is malformed.
std::optional<AtomicLead> read_atomic_lead(const std::byte* in);

std::uint64_t read_immediate(const std::byte* in);

}  // namespace pullman::wire
